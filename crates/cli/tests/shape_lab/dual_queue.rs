//! `htb+dualpi2`: its options reach the kernel in each direction, although `tc` may not know them, and are removed.

use super::guest::run;

/// Prints the options of each `dualpi2` as the kernel reports them: a line for each device, `kind=value`.
const OPTIONS: &str = r#"
cat > options.py <<'END'
import socket, struct
LENGTHS = {1: 'B', 2: 'H', 4: 'I', 8: 'Q'}
def attributes(data):
    while len(data) >= 4:
        length, kind = struct.unpack_from('=HH', data)
        yield kind & 0x3fff, data[4:length]
        data = data[(length + 3) & ~3:]
connection = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)
connection.send(struct.pack('=IHHIIBxxxiIII', 36, 38, 0x301, 1, 0, 0, 0, 0, 0, 0))
done = False
while not done:
    data = connection.recv(1 << 16)
    while data:
        length, kind = struct.unpack_from('=IH', data)
        done = done or kind in (2, 3)
        if kind == 36:
            index, = struct.unpack_from('=i', data, 20)
            found = dict(attributes(data[36:length]))
            if found.get(1) == b'dualpi2\0':
                options = sorted(attributes(found[2]))
                text = ' '.join(f'{kind}={struct.unpack("=" + LENGTHS[len(value)], value)[0]}' for kind, value in options)
                print(f'dual-{socket.if_indextoname(index)}: {text}')
        data = data[(length + 3) & ~3:]
END
"#;

#[test]
fn options_of_a_dual_queue_reach_the_kernel_in_each_direction() {
    let script = format!(
        "{OPTIONS}
         ip link add v0 type veth peer name v1; ip link set v0 up; ip link set v1 up
         DEVICE=v0; tree > before
         shape v0 --up 20M --down 50M --back-end htb+dualpi2 --target up=20ms --dualpi2 coupling=3,step=2ms \
               --dualpi2 down:alpha=0.25,beta=2,tupdate=32ms,drop=enqueue,overload=overflow,protection=20,split-gso=off \
               -q > out 2>&1 || cat out
         /usr/bin/python3 options.py
         shape v0 status --once > out 2>&1; echo \"status: $?\"
         shape v0 off -q > out 2>&1 || cat out
         compare off
         shape v0 --up 20M --back-end htb+fq_codel --dualpi2 coupling=3 -q > out 2>&1; echo \"other: $?\"; cat out"
    );
    let output = run("lan-1g", &script);
    let reported = |device: &str| {
        let line = output.value(&format!("dual-{device}"));
        move |kind: u16| {
            let found = line.split(' ').find_map(|pair| pair.strip_prefix(&format!("{kind}=")));
            found.unwrap_or_else(|| panic!("no attribute {kind}: {line}")).parse::<u32>().expect("a number")
        }
    };
    let (up, down) = (reported("v0"), reported("ifb4v0"));
    assert_eq!([3, 8, 10].map(&up), [20_000, 2000, 3], "target, step and coupling up");
    assert_eq!([3, 8, 10].map(&down), [15_000, 2000, 3], "and down");
    assert_eq!([4, 5, 6].map(&down), [32_000, 64, 512], "interval and gains");
    assert_eq!([11, 12, 13, 15].map(&down), [0, 1, 20, 0], "overload, drops, protection and split");
    assert_eq!([4, 11, 12, 13, 15].map(&up), [16_000, 1, 0, 10, 1], "the kernel's defaults where nothing was given");
    assert_eq!(output.value("status"), "0", "{}", output.whole());
    output.assert_trees_equal(1);
    assert_eq!(output.value("other"), "2", "{}", output.whole());
    assert!(output.whole().contains("it has no dual queue (--dualpi2)"), "{}", output.whole());
}
