//! `towline acp`: the built-in agent, which works over the API of a model.

use std::process::ExitCode;
use std::time::Duration;

use towline_builtin::acp::{AcpSettings, Fetch, Key, WireFormat, main};

use crate::args::{Acp, OpenaiApi, Provider};
use crate::context::Context;
use crate::failure::Failure;

/// Serves until standard input ends.
pub(crate) fn run(context: &Context, args: Acp) -> Result<ExitCode, Failure> {
    let settings = settings(context, args)?;
    main(settings).map_err(|error| Failure::internal(format!("cannot start the runtime: {error}")))?;
    Ok(ExitCode::SUCCESS)
}

fn settings(context: &Context, args: Acp) -> Result<AcpSettings, Failure> {
    let format = format(&args)?;
    let key_variable = args.key_env.unwrap_or_else(|| default_key(args.provider).to_owned());
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

const fn default_key(provider: Provider) -> &'static str {
    match provider {
        Provider::Openai => "OPENAI_API_KEY",
        Provider::Gemini => "GEMINI_API_KEY",
        Provider::Anthropic => "ANTHROPIC_API_KEY",
    }
}

/// Servers that speak like OpenAI seldom know its newer API.
fn format(args: &Acp) -> Result<WireFormat, Failure> {
    let is_openais = args.base_url.as_deref().is_none_or(|url| {
        let host = url.split_once("://").map_or(url, |(_, rest)| rest);
        host.split(['/', ':']).next() == Some("api.openai.com")
    });
    match (args.provider, args.api) {
        (Provider::Openai, Some(OpenaiApi::Responses)) => Ok(WireFormat::OpenaiResponses),
        (Provider::Openai, Some(OpenaiApi::Chat)) => Ok(WireFormat::OpenaiChat),
        (Provider::Openai, None) if is_openais => Ok(WireFormat::OpenaiResponses),
        (Provider::Openai, None) => Ok(WireFormat::OpenaiChat),
        (Provider::Gemini, None) => Ok(WireFormat::Gemini),
        (Provider::Anthropic, None) => Ok(WireFormat::Anthropic),
        (_, Some(_)) => {
            Err(Failure::usage("--api is for --provider openai; the others have one API")
                .hint("leave --api out"))
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Args, Command};

    fn parsed(words: &str) -> Acp {
        let words = "towline acp --model m ".to_owned() + words;
        match Args::try_parse_from(words.split_whitespace()).expect("arguments").command {
            Command::Acp(acp) => acp,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_api_follows_from_the_provider_and_the_address() {
        for (words, wanted) in [
            ("--provider openai", WireFormat::OpenaiResponses),
            ("--provider openai --api chat", WireFormat::OpenaiChat),
            ("--provider openai --base-url https://api.openai.com/v1", WireFormat::OpenaiResponses),
            ("--provider openai --base-url http://127.0.0.1:1/v1", WireFormat::OpenaiChat),
            ("--provider openai --base-url https://api.openai.com.example/v1", WireFormat::OpenaiChat),
            (
                "--provider openai --base-url http://127.0.0.1:1/v1 --api responses",
                WireFormat::OpenaiResponses,
            ),
            ("--provider gemini", WireFormat::Gemini),
            ("--provider anthropic --base-url http://h/v1", WireFormat::Anthropic),
        ] {
            assert_eq!(format(&parsed(words)).expect(words), wanted, "{words}");
        }
        assert!(format(&parsed("--provider gemini --api chat")).is_err());
    }
}
