# `cpack -G DEB` (make deb): a package of what `make install` installs, below /usr. The MPIs are recommended only: the preloaded libraries are
# linked to none, and serve serial programs without.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME holdfast)
set(CPACK_PACKAGE_CONTACT "Holdfast maintainers <holdfast@localhost>" CACHE STRING "maintainer that a package names")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "files of unmodified MPI programs that survive lost storage")
set(CPACK_PACKAGE_DESCRIPTION
  "Programs that are started by \"holdfast run\" keep their files replicated or Reed-Solomon coded over several directories, on different
devices or mounts. MPI-IO and plain calls are served by a preloaded library, one for each MPI. When a directory is lost, before, during or after the
run, the program does not notice; \"holdfast repair\" mends its files.
.
It also gives shared file pointers and buffers, and profiles of what programs do with their files.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "mpich | openmpi-bin")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS python3)  # libexec/holdfast/darshan_log.py
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_PRE_BUILD_SCRIPTS ${CMAKE_SOURCE_DIR}/cmake/debian_files.cmake)
set(CPACK_VERBATIM_VARIABLES ON)
include(CPack)
