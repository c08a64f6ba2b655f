#define DISABLE_BRANCH_PROFILING

#include "../../../../linerate/shared_clock.h"

/* Reads CLOCK_REALTIME (0) or CLOCK_MONOTONIC (1); 0 when the kernel must be asked. */
static int linerate_read_clock(long clock, long *seconds, long *nanoseconds)
{
	volatile struct linerate_clock *page;
	unsigned long here, time, sum;

	/* The vDSO is one page. */
	asm("lea 0(%%rip), %0" : "=r" (here));
	page = (void *)((here & ~4095UL) - 4096);
	time = page->now + (page->looks + 1) * LINERATE_CYCLE;
	if ((clock != 0 && clock != 1) || !page->multiplier ||
	    time >= page->next_event || page->looks >= LINERATE_MAX_LOOKS)
		return 0;
	page->looks++;
	sum = ((unsigned __int128)(time / LINERATE_CYCLE - page->last_cycle) * page->multiplier + page->fraction)
		>> page->shift;
	if (clock)
		sum += page->monotonic_nanoseconds;
	*seconds = sum / 1000000000;
	*nanoseconds = sum % 1000000000;
	if (!clock)
		*seconds += page->real_seconds;
	return 1;
}
