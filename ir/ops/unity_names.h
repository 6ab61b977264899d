// Every op file calls its tables kAttributes and kExamples. In unity builds, where several files are one translation
// unit, CMake puts this before each: the names then end in an id of the file.
#pragma once

#define GSHARD_UNITY_PASTE_ONCE(name, id) name##id
#define GSHARD_UNITY_PASTE(name, id) GSHARD_UNITY_PASTE_ONCE(name, id)
#define kAttributes GSHARD_UNITY_PASTE(kAttributes_, GSHARD_UNITY_ID)
#define kExamples GSHARD_UNITY_PASTE(kExamples_, GSHARD_UNITY_ID)
