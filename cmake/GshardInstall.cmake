# The package for users: find_package(gshard) with add_gsd_model(), and pkg-config. The same files serve the build tree:
# find_package(gshard PATHS <build>/package).
include(CMakePackageConfigHelpers)

set(gshard_compiler_of_package "\${PACKAGE_PREFIX_DIR}/bin/gshardc")
set(gshard_runtime_of_package "\${PACKAGE_PREFIX_DIR}/lib/gshard")
configure_package_config_file(cmake/gshardConfig.cmake.in "${PROJECT_BINARY_DIR}/package/installed/gshardConfig.cmake"
                              INSTALL_DESTINATION lib/cmake/gshard)
set(gshard_compiler_of_package "${PROJECT_BINARY_DIR}/driver/gshardc")
set(gshard_runtime_of_package "${PROJECT_BINARY_DIR}/runtime")
configure_package_config_file(cmake/gshardConfig.cmake.in "${PROJECT_BINARY_DIR}/package/gshardConfig.cmake"
                              INSTALL_DESTINATION "${PROJECT_BINARY_DIR}/package")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/gshardConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
configure_file(cmake/GshardModel.cmake "${PROJECT_BINARY_DIR}/package/GshardModel.cmake" COPYONLY)
configure_file(cmake/gshard.pc.in "${PROJECT_BINARY_DIR}/package/gshard.pc" @ONLY)

install(FILES "${PROJECT_BINARY_DIR}/package/installed/gshardConfig.cmake"
              "${PROJECT_BINARY_DIR}/package/gshardConfigVersion.cmake" cmake/GshardModel.cmake
        DESTINATION lib/cmake/gshard)
install(FILES "${PROJECT_BINARY_DIR}/package/gshard.pc" DESTINATION lib/pkgconfig)
