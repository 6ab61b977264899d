# Warnings sit on one interface target that every folder links PRIVATE; presets turn them into errors.
# -Wrestrict of GCC 12 is wrong about `"(" + string` (its bug 105651). Clang blames std::stable_sort of libstdc++ 12 on us.
add_library(gshard_warnings INTERFACE)
target_compile_options(gshard_warnings INTERFACE -Wall -Wextra -Wno-missing-field-initializers
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>
  $<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>
  $<$<BOOL:${GSHARD_WERROR}>:-Werror>)
target_link_libraries(gshard_warnings INTERFACE gshard_linker)
