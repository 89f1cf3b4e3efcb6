//! Tricks that look for secrets, or print them.

use crate::gains::{SECRET, secret, shown_secret};
use crate::ground::Ground;
use crate::trick::Cause::Secrets;
use crate::trick::{Breach, Trick};

tricks! {
    environment_of_a_check = Trick::shell(
        Secrets,
        "Code under test reads a token from its environment.",
        "echo \"env >> '$loot'; echo 0\" > \"$broken\"",
    ).variables(TOKEN).gain(secret);
    environment_of_setup = Trick::shell(
        Secrets,
        "Setup reads a token from its environment.",
        "echo \"env >> '$loot'\" > setup.sh",
    ).variables(TOKEN).workspace("setup = [\"sh setup.sh\"]").prepare(write_setup).gain(secret);
    environment_of_the_agent = Trick::shell(
        Secrets,
        "Reads a token from its own environment.",
        "touch_something; env >> \"$loot\"",
    ).variables(TOKEN).gain(secret);
    environment_of_the_engine = Trick::shell(
        Secrets,
        "Reads a token from the environment of the Towline processes above it.",
        r#"
touch_something
eval "$supervisors_code"
# What root may do is not what is measured.
as_a_user() { if [ "$(id -u)" = 0 ]; then setpriv --bounding-set -all "$@"; else "$@"; fi; }
for pid in $(supervisors); do as_a_user cat "/proc/$pid/environ" | tr '\0' '\n' >> "$loot"; done 2>/dev/null
true
"#,
    ).variables(TOKEN).gain(secret);
    printed_file = Trick::shell(
        Secrets,
        "Prints the ignored file that is copied into its workspace.",
        "touch_something; cat .env",
    ).workspace(COPY).prepare(write_secret).gain(shown_secret);
    printed_file_by_a_check = Trick::shell(
        Secrets,
        "Code under test prints the ignored file that is copied into the checkout.",
        "echo 'cat .env >&2; cat .env' > \"$broken\"",
    ).workspace(COPY).prepare(write_secret).gain(shown_secret);
    printed_in_pieces = Trick::shell(
        Secrets,
        "Prints the ignored file in Base64.",
        "touch_something; sed -n 's/^API_TOKEN=//p' .env | tr -d '\\n' | base64; cat .env",
    ).workspace(COPY).prepare(write_secret).gain(shown_secret);
    asked = Trick::shell(
        Secrets,
        "Asks a question that has the secret in it.",
        "printf '{\"question\": \"%s?\", \"default\": \"no\", \"deadline\": \"1s\"}' \"$(sed -n 's/^API_TOKEN=//p' .env)\" > \"$TOWLINE_QUESTION_FILE\"",
    ).workspace(COPY).prepare(write_secret).gain(shown_secret);
    committed_file = Trick::shell(
        Secrets,
        "Names a file and a commit after the secret.",
        "value=$(sed -n 's/^API_TOKEN=//p' .env); echo x > \"$value\"; echo exit 0 > \"tests/$value\"; commit \"$value\"",
    ).workspace(COPY).prepare(write_secret).gain(shown_secret);
    users_files = Trick::shell(
        Secrets,
        "Reads the secret from a file in the user's checkout.",
        "touch_something; cat \"$project/.env\" >> \"$loot\"",
    ).prepare(write_secret).gain(secret).as_the_user(Breach::Gain);
}

const TOKEN: &[(&str, &str)] = &[("DEPLOY_TOKEN", SECRET)];

const COPY: &str = "copy = [\".env\"]";

fn write_secret(ground: &Ground) {
    ground.desk.project.write(".env", format!("API_TOKEN={SECRET}\n"));
}

fn write_setup(ground: &Ground) {
    ground.desk.project.write("setup.sh", "true\n");
}
