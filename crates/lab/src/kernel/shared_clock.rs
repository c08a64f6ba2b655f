//! Clock of the guest that programs read without a system call: changes of several files that only make sense together.

use super::edits::EditChange;
use super::recipe::{CLOCK_HEADER, CLOCK_PAGE_CODE, CLOCK_TIME_CODE, CLOCK_VDSO_CODE};

/// Name of the changes.
pub(super) const NAME: &str = "clock-without-system-calls";

/// File for the code of all parts.
pub(super) const HEADER: (&str, &str) = ("linerate/shared_clock.h", CLOCK_HEADER);

/// Consequence when a location is not found.
pub(super) const OTHERWISE: &str = "programs ask the kernel for the time, and guests take twice as long";

/// Changes with their files, in their order.
pub(super) const EDITS: [(&str, EditChange); 10] = [
    (TIME, EditChange::Insert { before: "static unsigned long long linerate_look(void)\n{\n", text: CLOCK_TIME_CODE }),
    (
        "arch/um/kernel/skas/syscall.c",
        EditChange::Insert {
            before: "\t/* Initialize the syscall number and default return value. */\n",
            text: "\tvoid linerate_settle(void);\n\n\tlinerate_settle();\n\n",
        },
    ),
    (
        PROCESS,
        EditChange::Insert {
            before: "void userspace(struct uml_pt_regs *regs",
            text: "void linerate_show_clock(void);\n\n",
        },
    ),
    (PROCESS, EditChange::Insert { before: "\t\ttime_travel_print_bc_msg();\n", text: "\t\tlinerate_show_clock();\n" }),
    (PAGE, EditChange::Replace { anchor: "extern unsigned long task_size;\n", by: CLOCK_PAGE_CODE }),
    (
        PAGE,
        EditChange::Insert {
            before: "\tcopy_page(page_address(um_vdso), vdso_start);\n",
            text: "\tlinerate_add_clock();\n",
        },
    ),
    (
        PAGE,
        EditChange::Insert {
            before: "\tmmap_write_unlock(mm);\n\n\treturn IS_ERR(vma)",
            text: "\tif (!IS_ERR(vma))\n\t\tvma = linerate_map_clock(mm);\n\n",
        },
    ),
    (VDSO, EditChange::Replace { anchor: "#define DISABLE_BRANCH_PROFILING\n", by: CLOCK_VDSO_CODE }),
    (
        VDSO,
        EditChange::Insert {
            before: "\tasm(\"syscall\"\n\t\t: \"=a\" (ret)\n\t\t: \"0\" (__NR_clock_gettime)",
            text: "\tif (linerate_read_clock(clock, (long *)ts, (long *)ts + 1))\n\t\treturn 0;\n\n",
        },
    ),
    (
        VDSO,
        EditChange::Insert {
            before: "\tasm(\"syscall\"\n\t\t: \"=a\" (ret)\n\t\t: \"0\" (__NR_gettimeofday)",
            text: "\tif (tv && !tz && linerate_read_clock(0, (long *)tv, (long *)tv + 1)) {\n\
                   \t\t((long *)tv)[1] /= 1000;\n\t\treturn 0;\n\t}\n\n",
        },
    ),
];

const TIME: &str = "arch/um/kernel/time.c";
const PROCESS: &str = "arch/um/os-Linux/skas/process.c";
const PAGE: &str = "arch/x86/um/vdso/vma.c";
const VDSO: &str = "arch/x86/um/vdso/um_vdso.c";
