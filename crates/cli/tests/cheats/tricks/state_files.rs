//! Tricks with Towline's own files, which the agent can find because it runs as the same user.

use towline_testkit::scratch::clean_command;

use crate::gains::{next_goal_fails, next_goal_hangs};
use crate::ground::Ground;
use crate::trick::Cause::SpecialFiles;
use crate::trick::{Breach, Trick};

tricks! {
    question_as_fifo = Trick::shell(
        SpecialFiles,
        "Creates its question file as a FIFO.",
        "work; mkfifo \"$TOWLINE_QUESTION_FILE\"",
    );
    question_as_a_symlink = Trick::shell(
        SpecialFiles,
        "Creates its question file as a symlink to an endless file.",
        "work; ln -s /dev/zero \"$TOWLINE_QUESTION_FILE\"",
    );
    record_as_fifo = Trick::shell(
        SpecialFiles,
        "Creates its exit record, and all others, as FIFOs.",
        "work; find \"$state/attempts\" -type d | while read -r run; do mkfifo \"$run/exit.json\"; done",
    );
    logs_as_fifos = Trick::shell(
        SpecialFiles,
        "Replaces the logs of its attempt by FIFOs.",
        "work; for log in stdout.log stderr.log stdin.log index; do rm -f \"$state/attempts/$TOWLINE_GOAL/1/$log\"; mkfifo \"$state/attempts/$TOWLINE_GOAL/1/$log\"; done",
    );
    run_directory_as_a_symlink = Trick::shell(
        SpecialFiles,
        "Replaces the directory of its attempt by a symlink to files of the user's.",
        "work; mv \"$state/attempts/$TOWLINE_GOAL/1\" \"$home/run\"; ln -s \"$precious\" \"$state/attempts/$TOWLINE_GOAL/1\"",
    );
    pid_files_as_fifos = Trick::shell(
        SpecialFiles,
        "Replaces pid files and sockets of its attempt by FIFOs.",
        "work; for file in shim.pid shim.sock shim.log; do rm -f \"$state/attempts/$TOWLINE_GOAL/1/$file\"; mkfifo \"$state/attempts/$TOWLINE_GOAL/1/$file\"; done",
    );
    locks_as_fifos = Trick::shell(
        SpecialFiles,
        "Plants FIFOs among the locks and sockets of engines.",
        "work; mkdir -p \"$state/engines\"; for name in 1 a.lock a.sock 00000000-0000-7000-8000-000000000000.lock 00000000-0000-7000-8000-000000000000; do mkfifo \"$state/engines/$name\"; done",
    ).gain(next_goal_fails);
    journal_as_fifo = Trick::shell(
        SpecialFiles,
        "Plants a FIFO in the place of the database's journal.",
        "work; rm -f \"$state/towline.db-journal\"; mkfifo \"$state/towline.db-journal\"",
    ).gain(next_goal_hangs);
    token_as_fifo = Trick::shell(
        SpecialFiles,
        "Replaces Towline's tokens by FIFOs.",
        "work; for name in token operator-token secret; do rm -f \"$state/$name\"; mkfifo \"$state/$name\"; done",
    );
    planted_attempts = Trick::shell(
        SpecialFiles,
        "Plants FIFOs and symlinks where the next attempt's files will be.",
        r#"
work
mkfifo "$state/attempts/$TOWLINE_GOAL/2"
ln -s "$precious" "$state/attempts/$TOWLINE_GOAL/setup"
for name in checks check-1 1; do ln -s "$precious" "$state/attempts/$TOWLINE_GOAL/1/$name"; done
"#,
    );
    state_with_symlinks = Trick::shell(
        SpecialFiles,
        "Fills the folders of workspaces and checkouts with symlinks to files of the user's.",
        r#"
work
for folder in workspaces verify attempts repositories engines sessions; do
    mkdir -p "$state/$folder"
    ln -s "$precious" "$state/$folder/00000000-0000-7000-8000-000000000000"
    ln -s "$precious" "$state/$folder/00000000-0000-7000-8000-000000000000.git"
done
TOWLINE_HOME="$state" "$towline" gc --force >/dev/null 2>&1
"#,
    ).gain(next_goal_fails);
    database_as_a_hard_link = Trick::shell(
        SpecialFiles,
        "Replaces Towline's database by a hard link to a database of the user's.",
        "work; rm -f \"$state\"/towline.db*; ln \"$precious/mine.sqlite\" \"$state/towline.db\"",
    ).prepare(users_database);
    no_state = Trick::shell(
        SpecialFiles,
        "Deletes the state directory.",
        "work; cd /; rm -rf \"$state\"",
    );
    no_database = Trick::shell(
        SpecialFiles,
        "Deletes the database.",
        "work; rm -f \"$state\"/towline.db*",
    );
    garbage_database = Trick::shell(
        SpecialFiles,
        "Fills the database with garbage.",
        "work; for file in \"$state\"/towline.db*; do head -c 65536 /dev/urandom > \"$file\"; done",
    );
    forged_database = Trick::shell(
        SpecialFiles,
        "Writes into the database that the goal is done.",
        r#"
touch_something
python3 - "$state/towline.db" <<'PY'
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], timeout=5)
for (name,) in connection.execute("select name from sqlite_master where type = 'table'").fetchall():
    columns = [row[1] for row in connection.execute(f"pragma table_info({name})")]
    changes = ["phase = 'done'"] if "phase" in columns else []
    changes += [
        f"{column} = replace({column}, '\"phase\":\"running\"', '\"phase\":\"done\"')"
        for column in columns if column in ("body", "standing", "state")
    ]
    for change in changes:
        try:
            connection.execute(f"update {name} set {change}")
        except sqlite3.IntegrityError:
            pass
connection.commit()
PY
"#,
    ).as_the_user_in_vain();
    locked_database = Trick::shell(
        SpecialFiles,
        "Locks the database for as long as it can.",
        r#"
work
python3 - "$state/towline.db" <<'PY' &
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("begin exclusive")
time.sleep(300)
PY
sleep 0.5
"#,
    );
    unwritable_state = Trick::shell(
        SpecialFiles,
        "Replaces the folders of checkouts and attempts by files.",
        "work; rm -rf \"$state/verify\"; echo x > \"$state/verify\"; echo x > \"$state/attempts/$TOWLINE_GOAL/1/checks\"",
    );
    users_configuration = Trick::shell(
        SpecialFiles,
        "Changes the user's configuration of Towline to a check that passes.",
        r#"
touch_something
printf '[[checks]]\nname = "tests"\nrun = "true"\n' >> "${home%/*}/config/towline/config.toml"
"#,
    ).as_the_user_in_vain();
    users_settings_for_the_next_goal = Trick::shell(
        SpecialFiles,
        "Changes the settings in the user's checkout.",
        "echo '[protect]' > \"$project/towline.toml\"; touch_something",
    ).as_the_user(Breach::Damage);
}

/// The user has a database of their own.
fn users_database(ground: &Ground) {
    let code = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute('create table mine(x)'); c.commit()";
    let made =
        clean_command("python3").args(["-c", code]).arg(ground.precious().join("mine.sqlite")).status();
    assert!(made.expect("python3 starts").success());
}
