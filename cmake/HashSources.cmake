# Writes NAME, the version of Sandwich and a hash of the files in FOLDERS below
# SOURCE_DIR and of LLVM's version, to OUTPUT.
set(hashes "LLVM ${LLVM}\n")
foreach(folder ${FOLDERS})
  file(GLOB files RELATIVE ${SOURCE_DIR} ${SOURCE_DIR}/${folder}/*.h
       ${SOURCE_DIR}/${folder}/*.cpp ${SOURCE_DIR}/${folder}/*.proto)
  list(SORT files)
  foreach(file ${files})
    file(SHA256 ${SOURCE_DIR}/${file} hash)
    string(APPEND hashes "${file} ${hash}\n")
  endforeach()
endforeach()
string(SHA256 hash "${hashes}")
string(SUBSTRING ${hash} 0 12 hash)
file(WRITE ${OUTPUT}
     "#define ${NAME} \"${VERSION}-${hash}\"\n")
