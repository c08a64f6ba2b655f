/*
 * Added by linerate. The page below the vDSO, by which programs read the clock without a system call: each of these takes
 * two switches between processes of the host. The kernel writes it, except for the looks.
 */
struct linerate_clock {
	/* Time at which the program went on, and of the next event, from which on the kernel is asked. */
	unsigned long now, next_event;
	/* Looks at the clock since then: each takes the time of a cycle. */
	unsigned long looks;
	/* The timekeeper: nanoseconds are ((cycles - last_cycle) * multiplier + fraction) >> shift. */
	unsigned long last_cycle, multiplier, fraction, shift;
	/* What both clocks are ahead of that. */
	unsigned long monotonic_nanoseconds, real_seconds;
};

/* Nanoseconds of a cycle: the kernel's TIMER_MULTIPLIER. */
#define LINERATE_CYCLE 256

/* Most looks until the kernel is asked. */
#define LINERATE_MAX_LOOKS 64
