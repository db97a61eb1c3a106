"""Makes the libraries that the program is linked with in place of CUDA's.

    doors.py CUDARC_SOURCE FOLDER LINK_FOLDER

For every function that cudarc declares of a library, the stand-in has one of the same name that jumps through a
without CUDA, and can say in words what is missing there. A function that the real library lacks ends the program when
it is called, with its name.
"""
import os
import re
import subprocess
import sys

LIBRARIES = {"cuda": "driver", "cublas": "cublas", "cublasLt": "cublaslt", "curand": "curand", "nvrtc": "nvrtc", "cudnn": "cudnn"}

OPEN = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
extern void *door_%(n)s_table[];
extern const char door_%(n)s_names[];
static void *library;
__attribute__((visibility("hidden"))) void door_%(n)s_shut(void) {
    fputs("a function of lib%(n)s was called that the installed library does not have\n", stderr);
    abort();
}
/* 0, or why the library could not be opened */
const char *framepack_open_%(n)s(const char *path) {
    if (library) return 0;
    library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!library) return dlerror();
    const char *name = door_%(n)s_names;
    for (long i = 0; *name; i++) {
        void *at = dlsym(library, name);
        if (at) door_%(n)s_table[i] = at;
        while (*name++) {}
    }
    return 0;
}
"""


def doors(library, names):
    lines = [".text"]
    for i, name in enumerate(names):
        lines += [f".globl {name}", f".type {name},@function", f"{name}:", f"    jmp *door_{library}_table+{8 * i}(%rip)"]
    lines += [".data", ".balign 8", f".hidden door_{library}_table", f".globl door_{library}_table", f"door_{library}_table:"]
    lines += [f"    .quad door_{library}_shut"] * len(names)
    lines += [".section .rodata", f".hidden door_{library}_names", f".globl door_{library}_names", f"door_{library}_names:"]
    lines += [f'    .asciz "{name}"' for name in names] + ["    .byte 0", '.section .note.GNU-stack,"",@progbits', ""]
    return "\n".join(lines)


def main(cudarc, folder, links):
    cc = os.environ.get("CC", "gcc")
    for library, module in LIBRARIES.items():
        with open(f"{cudarc}/src/{module}/sys/mod.rs") as f:
            # culib is cudarc's own
            names = sorted(set(re.findall(r"pub (?:unsafe )?fn ((?:cu|nvrtc)\w+)\s*\(", f.read())) - {"culib"})
        base = f"{folder}/{library}"
        with open(f"{base}_table.s", "w") as f:
            f.write(doors(library, names))
        with open(f"{base}_open.c", "w") as f:
            f.write(OPEN % {"n": library})
        for part, suffix in (("table", "s"), ("open", "c")):
            subprocess.check_call([cc, "-O2", "-fPIC", "-c", f"{base}_{part}.{suffix}", "-o", f"{base}_{part}.o"])
        archive = f"{folder}/libdoor_{library}.a"
        if os.path.exists(archive):
            os.remove(archive)
        subprocess.check_call(["ar", "rcs", archive, f"{base}_table.o", f"{base}_open.o"])
        with open(f"{links}/lib{library}.so", "w") as f:
            f.write(f"INPUT({archive} -ldl)\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
