# One helper for every test; it knows about mpirun and the environment that Open MPI needs in containers.
find_package(GTest)
if(NOT GTest_FOUND)
  message(FATAL_ERROR "GoogleTest not found: install libgtest-dev and libgmock-dev")
endif()

set(GSHARD_MPI_ENV
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
  OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_odls_base_sigkill_timeout=0 OMPI_MCA_pml=ob1
  OMPI_MCA_btl=self,vader OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1)

# A test is skipped when GoogleTest skipped all its cases and none failed. A regular expression that one case's words
# can match would hide the failure of another: skipped is what CTest asks first.
set(GSHARD_ALL_SKIPPED "\\[  PASSED  \\] 0 tests\\.\n\\[  SKIPPED \\] [0-9]+ tests?, listed below:\n(\\[  SKIPPED \\] [^\n]*\n)+$")

# gshard_add_test(NAME name TARGET executable [ARGS ...] [LABELS ...] [NPROCS n])
function(gshard_add_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;TARGET;NPROCS" "ARGS;LABELS")
  set(launcher)
  if(arg_NPROCS)
    set(launcher "${MPIEXEC_EXECUTABLE}" "${MPIEXEC_NUMPROC_FLAG}" ${arg_NPROCS})
  endif()
  add_test(NAME ${arg_NAME} COMMAND ${launcher} $<TARGET_FILE:${arg_TARGET}> ${arg_ARGS})
  set_tests_properties(${arg_NAME} PROPERTIES LABELS "${arg_LABELS}" TIMEOUT 1800 SKIP_REGULAR_EXPRESSION "${GSHARD_ALL_SKIPPED}")
  if(arg_NPROCS)
    set_tests_properties(${arg_NAME} PROPERTIES PROCESSORS ${arg_NPROCS} ENVIRONMENT "${GSHARD_MPI_ENV}")
  endif()
endfunction()

# gshard_compile_below_with(option ...): for all that the folders below this one build.
function(gshard_compile_below_with)
  get_property(folders DIRECTORY PROPERTY SUBDIRECTORIES)
  foreach(folder IN LISTS folders)
    get_property(targets DIRECTORY "${folder}" PROPERTY BUILDSYSTEM_TARGETS)
    foreach(target IN LISTS targets)
      target_compile_options(${target} PRIVATE ${ARGN})
    endforeach()
  endforeach()
endfunction()
