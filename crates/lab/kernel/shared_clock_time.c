#include "../../../linerate/shared_clock.h"

struct linerate_clock *linerate_clock;
static bool linerate_settles;

/* Lets the time pass of the looks that the program took. Each system call begins with it. */
void linerate_settle(void);
void linerate_settle(void)
{
	unsigned long looks;

	linerate_settles = true;
	if (!linerate_clock || !linerate_clock->looks)
		return;
	looks = min(linerate_clock->looks, (unsigned long)LINERATE_MAX_LOOKS);
	linerate_clock->looks = 0;
	linerate_looks = time_travel_time == linerate_last ? linerate_looks + looks : looks - 1;
	linerate_last = time_travel_time + looks * LINERATE_CYCLE;
	time_travel_update_time_rel(looks * LINERATE_CYCLE);
}

/* Shows the time to the program that goes on; one that does nothing but look asks the kernel. */
void linerate_show_clock(void);
void linerate_show_clock(void)
{
	struct time_travel_event *event = time_travel_first_event();
	bool only_looks = linerate_looks >= 2048 && time_travel_time == linerate_last;

	if (!linerate_clock || !linerate_settles || time_travel_mode != TT_MODE_INFCPU)
		return;
	linerate_clock->now = time_travel_time;
	linerate_clock->next_event = event && !only_looks ? event->time : 0;
}

