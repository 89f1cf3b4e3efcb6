//! System calls that no program in a sandbox may make, as a filter that bubblewrap installs: those for the keyrings of the user's
//! session, and those that type into the user's terminal.

/// What the kernel calls an architecture, and the numbers of `add_key`, `request_key`, `keyctl` and `ioctl` there.
struct Architecture {
    id: u32,
    keys: [u32; 3],
    ioctl: u32,
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURES: &[Architecture] = &[
    Architecture { id: 0xc000_003e, keys: [248, 249, 250], ioctl: 16 },
    Architecture { id: 0x4000_0003, keys: [286, 287, 288], ioctl: 54 },
];

#[cfg(target_arch = "aarch64")]
const ARCHITECTURES: &[Architecture] = &[
    Architecture { id: 0xc000_00b7, keys: [217, 218, 219], ioctl: 29 },
    Architecture { id: 0x4000_0028, keys: [309, 310, 311], ioctl: 54 },
];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURES: &[Architecture] = &[];

/// Puts a character into the input of a terminal, and pastes into that of a console.
const TYPING: [u32; 2] = [0x5412, 0x541c];
/// Calls from here on are a second set, whose numbers are not looked at.
const SECOND_SET: u32 = 0x4000_0000;

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const RETURN: u16 = 0x06;

/// Where the number, the architecture and the second argument of a call are.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const SECOND_ARGUMENT: u32 = if cfg!(target_endian = "little") { 24 } else { 28 };

const ALLOW: u32 = 0x7fff_0000;
/// Fails with EPERM.
const REFUSE: u32 = 0x0005_0001;

/// The filter in the form of the kernel; empty on machines whose calls are not known.
pub(crate) fn filter() -> Vec<u8> {
    let mut filter = Vec::new();
    // An instruction, and how many of the next ones are skipped if it holds and if it does not.
    let mut add = |code: u16, value: u32, if_so: u8, if_not: u8| {
        filter.extend(code.to_ne_bytes());
        filter.extend([if_so, if_not]);
        filter.extend(value.to_ne_bytes());
    };
    for Architecture { id, keys, ioctl } in ARCHITECTURES {
        add(LOAD, ARCHITECTURE, 0, 0);
        add(IF_EQUAL, *id, 0, 11);
        add(LOAD, NUMBER, 0, 0);
        add(IF_AT_LEAST, SECOND_SET, 8, 0);
        for (number, to_refusal) in keys.iter().zip([7, 6, 5]) {
            add(IF_EQUAL, *number, to_refusal, 0);
        }
        add(IF_EQUAL, *ioctl, 0, 3);
        add(LOAD, SECOND_ARGUMENT, 0, 0);
        add(IF_EQUAL, TYPING[0], 2, 0);
        add(IF_EQUAL, TYPING[1], 1, 0);
        add(RETURN, ALLOW, 0, 0);
        add(RETURN, REFUSE, 0, 0);
    }
    if !ARCHITECTURES.is_empty() {
        add(RETURN, ALLOW, 0, 0);
    }
    filter
}
