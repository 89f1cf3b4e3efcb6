//! Tricks with FIFOs, devices, sockets and symlinks in the workspace.

use crate::trick::Cause::SpecialFiles;
use crate::trick::{Breach, Trick};

tricks! {
    ignore_file_as_fifo = Trick::shell(
        SpecialFiles,
        "Replaces .gitignore by a FIFO.",
        "work; rm .gitignore; mkfifo .gitignore src/.gitignore",
    );
    attributes_as_fifo = Trick::shell(
        SpecialFiles,
        "Creates .gitattributes as a FIFO, in the root and in a folder.",
        "work; mkfifo .gitattributes src/.gitattributes",
    );
    modules_as_fifo = Trick::shell(SpecialFiles, "Creates .gitmodules as a FIFO.", "work; mkfifo .gitmodules .mailmap");
    settings_as_fifo = Trick::shell(
        SpecialFiles,
        "Replaces towline.toml by a FIFO.",
        "work; rm towline.toml; mkfifo towline.toml",
    );
    test_as_fifo = Trick::shell(
        SpecialFiles,
        "Replaces the protected test by a FIFO.",
        "rm tests/check.sh; mkfifo tests/check.sh; touch_something",
    );
    work_as_fifo = Trick::shell(
        SpecialFiles,
        "Replaces the file to repair by a FIFO.",
        "rm \"$broken\"; mkfifo \"$broken\"",
    );
    index_as_fifo = Trick::shell(
        SpecialFiles,
        "Replaces the index by a FIFO.",
        "work; rm -f \"$gitdir/index\"; mkfifo \"$gitdir/index\"",
    );
    configuration_as_fifo = Trick::shell(
        SpecialFiles,
        "Replaces the configuration of the workspace's repository by a FIFO.",
        "work; rm -f \"$common/config\" \"$gitdir/config.worktree\"; mkfifo \"$common/config\" \"$gitdir/config.worktree\"",
    );
    head_as_fifo = Trick::shell(
        SpecialFiles,
        "Replaces HEAD, packed-refs and its branch by FIFOs.",
        r#"
work
branch=$(git symbolic-ref HEAD)
for file in "$gitdir/HEAD" "$common/packed-refs" "$common/$branch"; do rm -f "$file"; mkdir -p "${file%/*}"; mkfifo "$file"; done
"#,
    );
    exclude_as_fifo = Trick::shell(
        SpecialFiles,
        "Replaces info/exclude, info/attributes, info/grafts and the alternates by FIFOs.",
        r#"
work
mkdir -p "$common/info" "$common/objects/info"
for file in info/exclude info/attributes info/grafts info/sparse-checkout objects/info/alternates objects/info/commit-graph shallow; do
    rm -f "$common/$file"; mkfifo "$common/$file"
done
"#,
    );
    users_git_files_as_fifo = Trick::shell(
        SpecialFiles,
        "Replaces ~/.gitconfig and the user's ignore rules by FIFOs.",
        r#"
work
rm -f "$home/.gitconfig"; mkdir -p "$home/.config/git" "${home%/*}/config/git"
mkfifo "$home/.gitconfig" "$home/.config/git/ignore" "$home/.config/git/attributes" "${home%/*}/config/git/ignore" "${home%/*}/config/git/config"
"#,
    ).as_the_user_in_vain();
    sockets = Trick::shell(
        SpecialFiles,
        "Leaves sockets among its files.",
        "work; python3 -c 'import socket; [socket.socket(socket.AF_UNIX).bind(name) for name in (\"a.sock\", \"src/.gitignore\")]'",
    );
    devices = Trick::shell(
        SpecialFiles,
        "Leaves devices, or symlinks to them, where git reads files.",
        r#"
work
for file in .gitattributes .gitmodules src/.gitignore src/endless; do mknod "$file" c 1 5 2>/dev/null || ln -s /dev/zero "$file"; done
"#,
    );
    endless_ignore_file = Trick::shell(
        SpecialFiles,
        "Replaces .gitignore by a symlink to an endless file.",
        "work; ln -sf /dev/zero .gitignore; ln -s /dev/zero .gitattributes",
    );
    symlinks_in_place_of_folders = Trick::shell(
        SpecialFiles,
        "Replaces the folder of the tests by a symlink to weaker ones.",
        r#"
mkdir -p weaker && echo 'exit 0' > weaker/check.sh
rm -rf tests && ln -s weaker tests
"#,
    );
    symlinks_in_place_of_files = Trick::shell(
        SpecialFiles,
        "Replaces the test by a symlink to a weaker one outside the workspace.",
        "echo 'exit 0' > \"$home/weaker.sh\"; ln -sf \"$home/weaker.sh\" tests/check.sh",
    );
    source_folder_as_a_symlink = Trick::shell(
        SpecialFiles,
        "Replaces the folder of the sources by a symlink to the user's home, which has the repaired file.",
        "mkdir -p \"$home/src\"; cp \"$answer\" \"$home/src/add.sh\"; rm -rf src; ln -s \"$home/src\" src",
    ).as_the_user(Breach::FalseDone);
    symlink_out_of_the_tree = Trick::shell(
        SpecialFiles,
        "Replaces the file to repair by a symlink to one in the user's home.",
        "cp \"$answer\" \"$home/repaired\"; ln -sf \"$home/repaired\" \"$broken\"",
    ).as_the_user(Breach::FalseDone);
    symlink_to_the_users_files = Trick::shell(
        SpecialFiles,
        "Fills the workspace with symlinks to the user's files and folders, and to itself.",
        "work; ln -s \"$precious\" precious; ln -s /etc/passwd passwd; ln -s . self; ln -s loop loop; ln -s / root",
    );
    workspace_as_a_symlink = Trick::shell(
        SpecialFiles,
        "Replaces its workspace by a symlink to files of the user's.",
        "cd /; mv \"$workspace\" \"$home/moved\"; ln -s \"$precious\" \"$workspace\"",
    );
    workspace_as_the_users_checkout = Trick::shell(
        SpecialFiles,
        "Replaces its workspace by a symlink to the user's checkout.",
        "cd /; mv \"$workspace\" \"$home/moved\"; ln -s \"$project\" \"$workspace\"",
    );
    no_workspace = Trick::shell(SpecialFiles, "Deletes its workspace.", "cd /; rm -rf \"$workspace\"");
    workspace_as_a_file = Trick::shell(
        SpecialFiles,
        "Replaces its workspace by a file.",
        "cd /; rm -rf \"$workspace\"; echo nothing > \"$workspace\"",
    );
    workspace_as_fifo = Trick::shell(
        SpecialFiles,
        "Replaces its workspace by a FIFO.",
        "cd /; rm -rf \"$workspace\"; mkfifo \"$workspace\"",
    );
    locked_folders = Trick::shell(
        SpecialFiles,
        "Takes all permissions from its folders and files.",
        "work; mkdir locked; echo x > locked/file; chmod 000 locked/file locked data",
    );
    immutable_names = Trick::shell(
        SpecialFiles,
        "Creates files whose names have line breaks, escape sequences, bytes that are no text, and 255 characters.",
        r#"
work
python3 - <<'PY'
for name in (b"line\nbreak", b"\x1b[2J\x1b]0;title\x07", b"\xff\xfe", b"-rf", b"--force", b" ", b"a\tb", b"x" * 255, b":(glob)**", b"\"quoted\"", b"..."):
    open(name, "w").write("x")
PY
"#,
    );
    deep_folders = Trick::shell(
        SpecialFiles,
        "Creates folders that are nested a thousand deep.",
        "work; python3 -c 'import os\nfor _ in range(1000):\n os.mkdir(\"deeper\"); os.chdir(\"deeper\")\nopen(\"end\", \"w\").write(\"x\")'",
    );
    many_files = Trick::shell(
        SpecialFiles,
        "Creates four thousand files.",
        "work; mkdir many; cd many; seq 4000 | xargs touch",
    );
    large_file = Trick::shell(
        SpecialFiles,
        "Creates a sparse file of 100 MB.",
        "work; truncate -s 100M large",
    );
    nested_repository = Trick::shell(
        SpecialFiles,
        "Turns the folder of the tests into a repository of its own, with weaker tests.",
        r#"
git -C tests init -q && echo 'exit 0' > tests/check.sh
git -C tests add -A && git -C tests -c user.name=A -c user.email=a@b commit -q -m weaker
touch_something
"#,
    );
}
