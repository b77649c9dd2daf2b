# The package: the shared library's name, version and symbols, and what `cmake --install` puts where - library, headers,
# programs, find_package(tutti) and pkg-config. Everything installed is relocatable.
include(CMakePackageConfigHelpers)

# Its interface is the headers alone: whoever uses tutti neither sees nor links what it is made of.
set_target_properties(tutti PROPERTIES
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}
  EXPORT_NAME tutti
  INTERFACE_INCLUDE_DIRECTORIES
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>;$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>"
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/tutti.map)
target_link_options(tutti PRIVATE LINKER:--version-script=${PROJECT_SOURCE_DIR}/cmake/tutti.map LINKER:--exclude-libs,ALL)
if(NOT TUTTI_SANITIZE)
  target_link_options(tutti PRIVATE LINKER:--no-undefined)
endif()

install(TARGETS tutti EXPORT tuttiTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tutti DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(program tutti-run tutti-info tutti-perf tutti-p2p)
  if(TARGET ${program})
    # The installed program finds the installed library, wherever both were moved to together.
    file(RELATIVE_PATH bin_to_lib /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
    install(TARGETS ${program} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endforeach()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tutti)
install(EXPORT tuttiTargets NAMESPACE tutti:: DESTINATION ${package_dir})
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tuttiConfig.cmake.in
  ${PROJECT_BINARY_DIR}/tuttiConfig.cmake INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface, and the package says so to whoever asks for another.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tuttiConfig.cmake ${PROJECT_BINARY_DIR}/tuttiConfigVersion.cmake
  DESTINATION ${package_dir})

set(pkgconfig_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH pkgconfig_to_prefix /${pkgconfig_dir} /)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tutti.pc.in ${PROJECT_BINARY_DIR}/tutti.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tutti.pc DESTINATION ${pkgconfig_dir})
