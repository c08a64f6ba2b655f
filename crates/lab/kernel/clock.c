/*
 * Added by linerate. What a look at the clock costs: next to nothing, unless
 * a program does nothing but look. Then time passes faster and faster, up to
 * some 16 us a look, so that it need not look a million times for a second.
 */
static unsigned long long linerate_last;
static unsigned int linerate_looks;

static unsigned long long linerate_look(void)
{
	unsigned long long cost = TIMER_MULTIPLIER;

	linerate_looks = time_travel_time == linerate_last ? linerate_looks + 1 : 0;
	if (linerate_looks >= 2048)
		cost <<= min((linerate_looks - 2048) / 256, 6u);
	linerate_last = time_travel_time + cost;
	return cost;
}

static u64 timer_read(struct clocksource *cs)
