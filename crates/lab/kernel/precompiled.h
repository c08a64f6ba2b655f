/*
 * Headers that almost every file of the network stack and its surroundings includes, compiled once (see Kbuild's last
 * lines). Each must stand by itself without KBUILD_MODNAME, which is another for each file.
 */
#include <linux/compiler_types.h>
#include <linux/module.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/fs.h>
#include <linux/skbuff.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <net/sock.h>
#include <net/ip.h>
#include <net/net_namespace.h>
#include <net/inet_connection_sock.h>
#include <linux/ipv6.h>
#include <net/route.h>
#include <net/ipv6.h>
#include <net/udp.h>
#include <linux/seq_file.h>
#include <linux/uaccess.h>
#include <linux/proc_fs.h>
#include <linux/syscalls.h>
#include <linux/ptrace.h>
#include <linux/security.h>
#include <linux/swap.h>
#include <linux/pagemap.h>
#include <linux/sched/signal.h>
#include <linux/mount.h>
#include <linux/namei.h>
#include <linux/bpf.h>
#include <net/genetlink.h>
#include <net/ip_fib.h>
#include <net/ip6_fib.h>
#include <linux/inetdevice.h>
#include <linux/blkdev.h>
#include <linux/backing-dev.h>
#include <linux/init.h>
#include <linux/nsproxy.h>
/* The build includes this one by itself in each file, and it refuses to be included twice. */
#undef __LINUX_COMPILER_VERSION_H
