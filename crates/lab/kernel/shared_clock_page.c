extern unsigned long task_size;

#include <linux/pvclock_gtod.h>
#include <linux/timekeeper_internal.h>
#include "../../../../linerate/shared_clock.h"

extern struct linerate_clock *linerate_clock;

static int linerate_timekeeper_changed(struct notifier_block *block, unsigned long was_set, void *changed)
{
	struct timekeeper *timekeeper = changed;
	struct tk_read_base *base = &timekeeper->tkr_mono;

	linerate_clock->last_cycle = base->cycle_last;
	linerate_clock->multiplier = strcmp(base->clock->name, "time-travel-clock") ? 0 : base->mult;
	linerate_clock->fraction = base->xtime_nsec;
	linerate_clock->shift = base->shift;
	linerate_clock->monotonic_nanoseconds = ktime_to_ns(base->base);
	linerate_clock->real_seconds = timekeeper->xtime_sec;
	return 0;
}

static struct notifier_block linerate_timekeeper = { .notifier_call = linerate_timekeeper_changed };

static void __init linerate_add_clock(void)
{
	linerate_clock = (void *)get_zeroed_page(GFP_KERNEL);
	if (!linerate_clock)
		panic("Cannot allocate the page of the clock\n");
	pvclock_gtod_register_notifier(&linerate_timekeeper);
}

static vm_fault_t linerate_clock_fault(const struct vm_special_mapping *mapping, struct vm_area_struct *vma,
				       struct vm_fault *fault)
{
	return vmf_insert_pfn(vma, fault->address, __pa(linerate_clock) >> PAGE_SHIFT);
}

/* Maps the page where the vDSO expects it. */
static struct vm_area_struct *linerate_map_clock(struct mm_struct *mm)
{
	static struct vm_special_mapping mapping = { .name = "[clock]", .fault = linerate_clock_fault };

	return _install_special_mapping(mm, um_vdso_addr - PAGE_SIZE, PAGE_SIZE,
		VM_READ|VM_WRITE|VM_SHARED|VM_MAYREAD|VM_MAYWRITE|VM_MAYSHARE|
		VM_IO|VM_PFNMAP|VM_DONTDUMP, &mapping);
}
