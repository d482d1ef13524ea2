# What is installed, and how other projects find it: find_package(Sandwich) or
# pkg-config. The runtime needs nothing of the other components.
#   runtime      libsandwich.so, and sandwich-run, which runs other ranks for it
#   development  the header and what finds it
#   compiler     sandwich-compile
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

install(TARGETS SandwichShared EXPORT SandwichTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  COMPONENT runtime NAMELINK_COMPONENT development
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS sandwich-run
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
if(SANDWICH_BUILD_COMPILER)
  # LLVM's libraries may lie where the system does not look.
  set_target_properties(sandwich-compile PROPERTIES
    INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS sandwich-compile
    RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT compiler)
endif()

install(FILES ${PROJECT_SOURCE_DIR}/include/sandwich/Runtime/sandwich.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/sandwich/Runtime
  COMPONENT development)

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/Sandwich)
install(EXPORT SandwichTargets NAMESPACE Sandwich:: FILE SandwichConfig.cmake
  DESTINATION ${package} COMPONENT development)
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/SandwichConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/SandwichConfigVersion.cmake
  DESTINATION ${package} COMPONENT development)

# Relative, as `cmake --install --prefix` may go anywhere.
file(RELATIVE_PATH prefix_from_pkgconfig
  /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(${PROJECT_SOURCE_DIR}/cmake/sandwich.pc.in
  ${PROJECT_BINARY_DIR}/sandwich.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/sandwich.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
