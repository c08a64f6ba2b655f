/*
 * Added by linerate. What a look at the clock costs: next to nothing, unless
 * a program does nothing but look. Then time passes faster and faster, up to
 * some 16 us a look, so that it need not look a million times for a second.
 */
static unsigned long long linerate_look(void)
{
	static unsigned long long last;
	static unsigned int looks;
	unsigned long long cost = TIMER_MULTIPLIER;

	looks = time_travel_time == last ? looks + 1 : 0;
	if (looks >= 2048)
		cost <<= min((looks - 2048) / 256, 6u);
	last = time_travel_time + cost;
	return cost;
}

static u64 timer_read(struct clocksource *cs)
