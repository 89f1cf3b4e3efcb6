//! System calls that no program in a sandbox may make, as a filter that bubblewrap installs: those for the keyrings of the user's
//! session, those that type into the user's terminal, and those that lead to the control group that the program shares with the
//! engine and with other processes of the user's, which it could freeze or end.

/// What the kernel calls an architecture, and the numbers of calls there.
struct Architecture {
    id: u32,
    /// `add_key`, `request_key` and `keyctl`.
    keys: [u32; 3],
    ioctl: u32,
    /// `unshare` and `clone`, whose first argument names new namespaces.
    namespaces: [u32; 2],
}

#[cfg(target_arch = "x86_64")]
const ARCHITECTURES: &[Architecture] = &[
    Architecture { id: 0xc000_003e, keys: [248, 249, 250], ioctl: 16, namespaces: [272, 56] },
    Architecture { id: 0x4000_0003, keys: [286, 287, 288], ioctl: 54, namespaces: [310, 120] },
];

#[cfg(target_arch = "aarch64")]
const ARCHITECTURES: &[Architecture] = &[
    Architecture { id: 0xc000_00b7, keys: [217, 218, 219], ioctl: 29, namespaces: [97, 220] },
    Architecture { id: 0x4000_0028, keys: [309, 310, 311], ioctl: 54, namespaces: [337, 120] },
];

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ARCHITECTURES: &[Architecture] = &[];

/// `clone3` has its flags in memory, which a filter cannot read. Programs that miss it use `clone`.
const CLONE3: u32 = 435;
/// A namespace of control groups, in which a program could mount them anew.
const NEW_CONTROL_GROUPS: u32 = 0x0200_0000;
/// Puts a character into the input of a terminal, and pastes into that of a console.
const TYPING: [u32; 2] = [0x5412, 0x541c];
/// Calls from here on are a second set, whose numbers are not looked at.
const SECOND_SET: u32 = 0x4000_0000;

const LOAD: u16 = 0x20;
const IF_EQUAL: u16 = 0x15;
const IF_AT_LEAST: u16 = 0x35;
const IF_SET: u16 = 0x45;
const RETURN: u16 = 0x06;

/// Where the number, the architecture and the first two arguments of a call are.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const FIRST_ARGUMENT: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };
const SECOND_ARGUMENT: u32 = FIRST_ARGUMENT + 8;

const ALLOW: u32 = 0x7fff_0000;
/// Fails with EPERM.
const REFUSE: u32 = 0x0005_0001;
/// Fails with ENOSYS.
const MISSING: u32 = 0x0005_0026;

/// The filter in the form of the kernel; empty on machines whose calls are not known.
pub(crate) fn filter() -> Vec<u8> {
    let mut filter = Vec::new();
    for architecture in ARCHITECTURES {
        for (at, (code, value, if_so, if_not)) in (1..).zip(instructions(architecture)) {
            filter.extend(u16::to_ne_bytes(code));
            // How many of the next ones are skipped if it holds and if it does not.
            filter.extend([if_so, if_not].map(|place: u8| place.saturating_sub(at)));
            filter.extend(u32::to_ne_bytes(value));
        }
    }
    if !ARCHITECTURES.is_empty() {
        filter.extend(u16::to_ne_bytes(RETURN));
        filter.extend([0, 0]);
        filter.extend(ALLOW.to_ne_bytes());
    }
    filter
}

/// The instructions for calls of one architecture, each with the places of the next one if it holds and if it does not. Calls of
/// others go on behind them.
fn instructions(architecture: &Architecture) -> [(u16, u32, u8, u8); 19] {
    let Architecture { id, keys, ioctl, namespaces } = *architecture;
    let (flags, allowed, refused, missing, end) = (14, 16, 17, 18, 19);
    [
        (LOAD, ARCHITECTURE, 0, 0),
        (IF_EQUAL, id, 2, end),
        (LOAD, NUMBER, 0, 0),
        (IF_AT_LEAST, SECOND_SET, refused, 4),
        (IF_EQUAL, keys[0], refused, 5),
        (IF_EQUAL, keys[1], refused, 6),
        (IF_EQUAL, keys[2], refused, 7),
        (IF_EQUAL, CLONE3, missing, 8),
        (IF_EQUAL, namespaces[0], flags, 9),
        (IF_EQUAL, namespaces[1], flags, 10),
        (IF_EQUAL, ioctl, 11, allowed),
        (LOAD, SECOND_ARGUMENT, 0, 0),
        (IF_EQUAL, TYPING[0], refused, 13),
        (IF_EQUAL, TYPING[1], refused, allowed),
        (LOAD, FIRST_ARGUMENT, 0, 0),
        (IF_SET, NEW_CONTROL_GROUPS, refused, allowed),
        (RETURN, ALLOW, 0, 0),
        (RETURN, REFUSE, 0, 0),
        (RETURN, MISSING, 0, 0),
    ]
}
