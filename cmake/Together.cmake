# Sources that are compiled together. Most of what a small source costs are the headers that it shares with its neighbours: in lumps a build
# takes half as long. OFF: each source by itself, for who changes one of them again and again.
option(HOLDFAST_TOGETHER "compiles small sources of one target together" ON)

# holdfast_compile_together(TARGET LUMP [APART FILE...])
# LUMP is how many sources become one; those APART stay by themselves, for what they set or name would meet others.
function(holdfast_compile_together target lump)
  cmake_parse_arguments(together "" "" "APART" ${ARGN})
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HOLDFAST_TOGETHER} UNITY_BUILD_BATCH_SIZE ${lump})
  if(together_APART)
    set_source_files_properties(${together_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  endif()
endfunction()
