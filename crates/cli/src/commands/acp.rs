//! `towline acp`: the built-in agent, which works over the API of a model.

use std::process::ExitCode;
use std::time::Duration;

use towline_builtin::acp::{AcpSettings, Fetch, Key, main, wire_format};

use crate::args::Acp;
use crate::context::Context;
use crate::failure::Failure;

/// Serves until standard input ends.
pub(crate) fn run(context: &Context, args: Acp) -> Result<ExitCode, Failure> {
    let settings = settings(context, args)?;
    main(settings).map_err(|error| Failure::internal(format!("cannot start the runtime: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

fn settings(context: &Context, args: Acp) -> Result<AcpSettings, Failure> {
    let format = wire_format(args.provider, args.api, args.base_url.as_deref()).ok_or_else(|| {
        Failure::usage("--api is for --provider openai; the others have one API").hint("leave --api out")
    })?;
    let key_variable = args.key_env.unwrap_or_else(|| args.provider.key_variable().to_owned());
    let directories = args.dir.iter().map(|directory| {
        let path = context.directory.join(directory);
        path.canonicalize().ok().filter(|path| path.is_dir()).ok_or_else(|| {
            Failure::usage(format!("--dir {}: there is no such directory", directory.display()))
                .hint("name one that exists, or leave it out")
        })
    });
    let sessions = match args.sessions {
        Some(directory) => context.directory.join(directory),
        None => context.home_path()?.join("sessions"),
    };
    Ok(AcpSettings {
        format,
        base_url: args.base_url,
        key: context.variable(&key_variable).map(Key::new),
        key_variable,
        model: args.model,
        context_window: args.context_window,
        max_output: args.max_output,
        max_turns: args.max_turns,
        prices: args.price,
        fetch: if args.fetch { Fetch::On } else { Fetch::Off },
        directories: directories.collect::<Result<_, _>>()?,
        sessions,
        silence: Duration::from_secs(args.silence),
    })
}
