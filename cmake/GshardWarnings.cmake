# Warnings sit on one interface target that every folder links PRIVATE; presets turn them into errors.
add_library(gshard_warnings INTERFACE)
target_compile_options(gshard_warnings INTERFACE -Wall -Wextra -Wno-missing-field-initializers
  $<$<BOOL:${GSHARD_WERROR}>:-Werror>)
target_link_libraries(gshard_warnings INTERFACE gshard_linker)
