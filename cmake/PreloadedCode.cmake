# How code is compiled that is preloaded into programs.

function(holdfast_preloaded_code target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_compile_options(${target} PRIVATE -fvisibility=hidden -fvisibility-inlines-hidden)
  target_compile_definitions(${target} PRIVATE HOLDFAST_VERSION="${PROJECT_VERSION}")
endfunction()

# Against the mpi.h of the MPI of this name, and what src/intercept generates from it.
function(holdfast_code_for_mpi target name)
  add_dependencies(${target} holdfast_generated_${name})
  target_include_directories(${target} PUBLIC ${CMAKE_BINARY_DIR}/src/intercept/${name} ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
  target_compile_options(${target} PUBLIC ${HOLDFAST_MPI_FLAGS_${name}} -fvisibility=hidden -fvisibility-inlines-hidden)
endfunction()
