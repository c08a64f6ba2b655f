/* Added by linerate: randomness that is a function of linerate.seed=N on the kernel's command line (splitmix64). */
static void extract_pool_entropy(void *buf, size_t len);

static void __ref extract_entropy(void *buf, size_t len)
{
	static bool looked, seeded;
	static u64 state;
	u8 *out = buf;

	if (!looked) {
		const char *found = strstr(boot_command_line, "linerate.seed=");

		looked = true;
		if (found) {
			seeded = true;
			state = simple_strtoull(found + 14, NULL, 10);
		}
	}
	if (!seeded) {
		extract_pool_entropy(buf, len);
		return;
	}
	while (len--) {
		u64 mixed = (state += 0x9e3779b97f4a7c15ULL);

		mixed = (mixed ^ (mixed >> 30)) * 0xbf58476d1ce4e5b9ULL;
		mixed = (mixed ^ (mixed >> 27)) * 0x94d049bb133111ebULL;
		*out++ = (u8)(mixed ^ (mixed >> 31));
	}
}

static void extract_pool_entropy(void *buf, size_t len)
{
