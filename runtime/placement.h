// Where threads run at first. Apart, because both devices and the threads of a device are placed.
#pragma once

namespace gshard::runtime {

// Moves the calling thread to the n-th of the cores that the process may use (round robin), then lets the system move
// it freely again: threads that start on one core are seen to stay there for seconds while the other is idle. Nothing
// is pinned.
void startOnCore(int n);

// How many cores the process may use.
int usableCores();

}  // namespace gshard::runtime
