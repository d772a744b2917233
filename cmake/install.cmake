# What `cmake --install` puts where, and how other projects find it: by CMake (etch::etch) or by pkg-config
# (etch).

include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/etch)
install(TARGETS libetch EXPORT etch_targets)
install(EXPORT etch_targets NAMESPACE etch:: FILE etch-targets.cmake DESTINATION ${package_dir})
install(TARGETS etch)
install(FILES ${PROJECT_BINARY_DIR}/etch.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_BINARY_DIR}/etch.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
        RENAME etch)
install(FILES ${PROJECT_BINARY_DIR}/_etch DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install(FILES ${PROJECT_BINARY_DIR}/etch.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/etch DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(FILES ${PROJECT_BINARY_DIR}/include/etch/version.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/etch)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/examples DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.c")
install(DIRECTORY ${PROJECT_SOURCE_DIR}/models ${PROJECT_SOURCE_DIR}/machines DESTINATION ${CMAKE_INSTALL_DATADIR}/etch
        FILES_MATCHING PATTERN "*.etch" PATTERN data EXCLUDE)

# Relative, so that an installation can be moved.
file(RELATIVE_PATH to_prefix ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
list(JOIN ETCH_PKGCONFIG_MODULES " " modules)
configure_file(${PROJECT_SOURCE_DIR}/cmake/etch-config.cmake.in etch-config.cmake @ONLY)
configure_file(${PROJECT_SOURCE_DIR}/cmake/etch.pc.in etch.pc @ONLY)
write_basic_package_version_file(etch-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/etch-config.cmake ${PROJECT_BINARY_DIR}/etch-config-version.cmake
        DESTINATION ${package_dir})
install(FILES ${PROJECT_BINARY_DIR}/etch.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
