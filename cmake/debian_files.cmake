# What Debian wants otherwise than `make install` leaves it: manual pages compressed, the license under share/doc, and zsh's
# completion where Debian's zsh looks. CPack runs it before it packs.
set(usr ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/usr)
file(GLOB pages ${usr}/share/man/man*/*.[0-9])
if(NOT pages)
  message(FATAL_ERROR "no manual pages below ${usr}")
endif()
execute_process(COMMAND gzip -9n ${pages} COMMAND_ERROR_IS_FATAL ANY)
file(MAKE_DIRECTORY ${usr}/share/zsh/vendor-completions)
file(RENAME ${usr}/share/zsh/site-functions/_holdfast ${usr}/share/zsh/vendor-completions/_holdfast)
file(REMOVE_RECURSE ${usr}/share/zsh/site-functions)
file(WRITE ${usr}/share/doc/holdfast/copyright "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: holdfast

Files: *
Copyright: the Holdfast authors
License: Apache-2.0
 On Debian systems the full text is in /usr/share/common-licenses/Apache-2.0.
")
