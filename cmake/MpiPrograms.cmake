# Ordinary MPI programs (examples, test programs) are built by the compiler wrapper of each MPI, as a user would, so that
# nothing of this build's flags or libraries reaches them.
#
#   add_mpi_program(TARGET FOLDER SOURCE [OPTIONS...])
#
# builds SOURCE (.c or .f90, .F) into build/FOLDER/<mpi>/<source name without suffix, _f for Fortran> for each MPI in MPI_FLAVOURS
# and makes TARGET depend on all of them. OPTIONS go to the compiler.
find_program(MPICC_MPICH mpicc.mpich)
find_program(MPICC_OPENMPI mpicc.openmpi)
find_program(MPIF90_MPICH mpif90.mpich)
find_program(MPIF90_OPENMPI mpif90.openmpi)
set(MPI_FLAVOURS)
foreach(flavour mpich openmpi)
  string(TOUPPER ${flavour} upper)
  if(HOLDFAST_FIND_MPI AND MPICC_${upper})
    list(APPEND MPI_FLAVOURS ${flavour})
  endif()
endforeach()
# MPIs beside Debian's that libraries are built for (build/mpi, HOLDFAST_MPICC): mpich5, openmpi5, mpiabi (the standard ABI), ...
foreach(flavour ${HOLDFAST_MPI_NAMES})
  if(NOT flavour MATCHES "^(mpich4|openmpi4)$")
    string(TOUPPER ${flavour} upper)
    set(MPICC_${upper} ${HOLDFAST_MPICC_${flavour}})
    list(APPEND MPI_FLAVOURS ${flavour})
  endif()
endforeach()

function(add_mpi_program target folder source)
  add_mpi_program_for("${MPI_FLAVOURS}" ${target} ${folder} ${source} ${ARGN})
endfunction()

# The same for the MPIs in `flavours` only.
function(add_mpi_program_for flavours target folder source)
  get_filename_component(name ${source} NAME_WE)
  get_filename_component(suffix ${source} LAST_EXT)
  get_filename_component(source ${source} ABSOLUTE)
  foreach(flavour ${flavours})
    string(TOUPPER ${flavour} upper)
    set(directory ${CMAKE_BINARY_DIR}/${folder}/${flavour})
    file(MAKE_DIRECTORY ${directory})
    if(suffix STREQUAL ".c")
      set(compiler ${MPICC_${upper}})
      set(output ${directory}/${name})
      set(flags -O2 -Wall)
    else()
      set(compiler ${MPIF90_${upper}})
      set(output ${directory}/${name}_f)
      # Each program's modules apart, so that two of them can be compiled at the same time.
      file(MAKE_DIRECTORY ${directory}/${name}.mod)
      set(flags -O2 -Wall -J${directory}/${name}.mod)
    endif()
    if(NOT compiler)
      continue()
    endif()
    add_custom_command(OUTPUT ${output} COMMAND ${compiler} ${flags} -o ${output} ${source} ${ARGN}
      DEPENDS ${source} COMMENT "${flavour}: ${folder}/${name}${suffix}" VERBATIM)
    add_custom_target(${target}_${flavour} ALL DEPENDS ${output})
  endforeach()
endfunction()
