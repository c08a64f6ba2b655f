
# Added by linerate: a compiled form of the most used headers. Without it everything is compiled as ever, but slower, so
# that a failure is none.
prepare: linerate/all.h.gch
linerate/all.h.gch: linerate/precompiled.h $(offsets-file) $(rq-offsets-file)
	-$(CC) $(NOSTDINC_FLAGS) $(LINUXINCLUDE) $(KBUILD_CPPFLAGS) $(KBUILD_CFLAGS) $(KBUILD_CFLAGS_KERNEL) -x c-header -o $@ $<
