//! What a program in a sandbox cannot do.

use crate::{desk_doing, run_to_done};

/// A check that runs this as a program of Python.
fn python(program: &str) -> String {
    format!("test -e done && python3 -c '{program}'")
}

#[test]
fn no_program_types_into_a_terminal_not_even_one_of_its_own() {
    let typed = "import fcntl, os, pty, sys
child, terminal = pty.fork()
if child:
    sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
try:
    fcntl.ioctl(0, 0x5412, b\"x\")
except PermissionError:
    sys.exit(0)
sys.exit(1)";
    run_to_done(&desk_doing("touch done"), &python(typed));
}

#[test]
fn no_program_reaches_a_keyring() {
    let keyctl = "import ctypes, errno, platform, sys
number = {\"x86_64\": 250, \"aarch64\": 219}.get(platform.machine())
c = ctypes.CDLL(None, use_errno=True)
if number is not None:
    assert c.syscall(number, 0, -3, 1) == -1 and ctypes.get_errno() == errno.EPERM, ctypes.get_errno()";
    run_to_done(&desk_doing("touch done"), &python(keyctl));
}

#[test]
fn no_program_gets_rights_back_that_the_sandbox_took() {
    let check = "test -e done && ! grep -E '^Cap(Prm|Eff|Inh|Amb):.*[1-9a-f]' /proc/self/status && \
                 ! mount -o remount,rw / 2>/dev/null && ! touch /usr/planted 2>/dev/null";
    run_to_done(&desk_doing("touch done"), check);
}

#[test]
fn a_program_sees_no_process_but_its_own_and_no_file_of_another_place() {
    let check = "test -e done && test \"$(ls /proc | grep -c '^[0-9]')\" -lt 12 && \
                 test -z \"$(ls -A /run | grep -v -e towline -e systemd -e resolvconf -e NetworkManager)\" && \
                 test ! -e \"$HOME/../towline/towline.db\" && test ! -e \"$HOME/../towline/token\"";
    run_to_done(&desk_doing("touch done"), check);
}

#[test]
fn a_mount_point_that_an_agent_replaces_by_a_symlink_leads_nowhere() {
    // bubblewrap makes mount points while it still sees all files.
    let commands = "if [ ! -e first ]; then touch first; mv \"$HOME/.claude\" \"$HOME/old\"; ln -s /oldroot\"$HOME\"/outside \"$HOME/.claude\"; \
                    else touch done; fi";
    let desk = desk_doing(commands);
    let home = desk.home.path();
    std::fs::create_dir_all(home.join(".claude")).expect("a folder");
    std::fs::write(home.join(".claude/settings.json"), "{}").expect("written");
    std::fs::create_dir(home.join("outside")).expect("a folder");
    run_to_done(&desk, "test -e done");
    let outside = std::fs::read_dir(home.join("outside")).expect("a folder").count();
    assert_eq!(outside, 0);
}

#[test]
fn of_the_users_git_directory_only_objects_can_be_read() {
    let look =
        "for objects in $(cat .git/objects/info/alternates); do grep -rs hush \"${objects%/objects}\"; done";
    let desk = desk_doing(&format!("({look}) > seen.txt; git log --oneline > log.txt && touch done"));
    let git = desk.project.path().join(".git");
    std::fs::create_dir_all(git.join("modules/sub/objects")).expect("a submodule");
    for file in ["modules/sub/config", "hooks/pre-push", "note"] {
        std::fs::write(git.join(file), "hush").expect("written");
    }
    let check = format!("test -e done && test -s log.txt && test ! -s seen.txt && test -z \"$({look})\"");
    run_to_done(&desk, &check);
}

#[test]
fn no_program_reaches_the_control_group_that_it_shares_with_others() {
    // It could mount them anew in a namespace of its own, and end or freeze all processes of the engine's group.
    let tried =
        "unshare --user true && ! unshare --user --cgroup true 2> refused && grep -q 'not permitted' refused";
    run_to_done(&desk_doing(&format!("({tried}) && touch done")), &format!("test -e done && {tried}"));
}

#[test]
fn the_settings_of_the_kernel_cannot_be_changed_not_even_by_root() {
    let tried =
        "find /proc/sys -type f -writable 2>/dev/null | head -n 3; test -w /proc/sysrq-trigger && echo sysrq";
    let desk = desk_doing(&format!("({tried}) > open.txt; touch done"));
    run_to_done(&desk, &format!("test -e done && test ! -s open.txt && test -z \"$({tried})\""));
}
