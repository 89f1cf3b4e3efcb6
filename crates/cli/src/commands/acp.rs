//! `towline acp`: the built-in agent, which works over the API of a model.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser, TypedValueParser};
use towline_agent::{OpenaiApi, Provider};
use towline_app::{Context, Error};
use towline_builtin::acp::{AcpSettings, Fetch, Key, Prices, main, wire_format};

#[derive(Debug, clap::Args)]
#[command(after_help = "\
The key is read from the environment, never from the command line. A server of your own (--base-url) may need none.

Examples:
  towline acp --provider anthropic --model claude-sonnet-4-5
  towline acp --provider openai --model gpt-5 --price input=1.25,output=10,cache_read=0.125
  towline acp --provider openai --base-url http://127.0.0.1:11434/v1 --model qwen3-coder --context-window 32768

In an editor that supports ACP, add it as an agent by its command; in Zed's settings.json:
  \"agent_servers\": {\"Towline\": {
    \"command\": \"towline\",
    \"args\": [\"acp\", \"--provider\", \"gemini\", \"--model\", \"gemini-2.5-pro\"],
    \"env\": {\"GEMINI_API_KEY\": \"…\"}
  }}")]
pub(crate) struct Acp {
    /// The provider of the API; `openai` for servers that are compatible with it
    #[arg(long, value_parser = named(Provider::ALL, Provider::name))]
    provider: Provider,
    /// The OpenAI API to use [default: responses; chat if --base-url is not OpenAI's own]
    #[arg(long, value_parser = named(OpenaiApi::ALL, OpenaiApi::name))]
    api: Option<OpenaiApi>,
    /// The address of the API with its version, such as http://127.0.0.1:8080/v1 [default: the provider's own]
    #[arg(long, value_name = "URL", value_parser = base_url)]
    base_url: Option<String>,
    /// The model to use
    #[arg(long, value_name = "M", value_parser = NonEmptyStringValueParser::new())]
    model: String,
    /// The environment variable that holds the key [default: OPENAI_API_KEY, GEMINI_API_KEY or ANTHROPIC_API_KEY]
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    key_env: Option<String>,
    /// The context window of the model in tokens; a conversation that comes near is replaced by a summary
    #[arg(long, value_name = "TOKENS", default_value_t = 128_000, value_parser = clap::value_parser!(u64).range(1000..))]
    context_window: u64,
    /// The longest answer, in tokens [default: the provider's own]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u64).range(1..))]
    max_output: Option<u64>,
    /// The most requests to the model in one turn [default: no limit]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_turns: Option<u32>,
    /// The price of a million tokens: input=USD,output=USD, optionally with cache_read=USD,cache_write=USD
    ///
    /// Without it no cost is reported. Cached tokens cost as much as input unless a price for them is given.
    #[arg(long, value_name = "PRICES")]
    price: Option<Prices>,
    /// Let the model fetch pages of the web
    #[arg(long)]
    fetch: bool,
    /// Another directory that the model may read; may be given several times
    #[arg(long, value_name = "DIR")]
    dir: Vec<PathBuf>,
    /// The directory for sessions [default: sessions in the state directory]
    #[arg(long, value_name = "DIR")]
    sessions: Option<PathBuf>,
    /// Seconds without a byte from the API after which the connection counts as broken
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    silence: u64,
}

/// Serves until standard input ends.
pub(crate) fn run(context: &Context, args: Acp) -> Result<(), Error> {
    let settings = settings(context, args)?;
    main(settings).map_err(|error| Error::internal(format!("cannot start the runtime: {error}")))?;
    Ok(())
}

fn settings(context: &Context, args: Acp) -> Result<AcpSettings, Error> {
    let format = wire_format(args.provider, args.api, args.base_url.as_deref()).ok_or_else(|| {
        Error::usage("--api is for --provider openai; the others have one API").hint("leave --api out")
    })?;
    let key_variable = args.key_env.unwrap_or_else(|| args.provider.key_variable().to_owned());
    let directories = args.dir.iter().map(|directory| {
        let path = context.directory.join(directory);
        path.canonicalize().ok().filter(|path| path.is_dir()).ok_or_else(|| {
            Error::usage(format!("--dir {}: there is no such directory", directory.display()))
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

/// One of these values, by its name.
fn named<T: Copy + Send + Sync + 'static, const N: usize>(
    all: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    let find =
        move |given: String| all.into_iter().find(|one| name(*one) == given).ok_or("it has no such name");
    PossibleValuesParser::new(all.map(name)).try_map(find)
}

fn base_url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    match rest.and_then(|rest| rest.split('/').next()) {
        Some(host) if !host.is_empty() && !text.contains(char::is_whitespace) => Ok(text.to_owned()),
        _ => Err(
            "a URL begins with http:// or https:// and the name of a host, such as http://127.0.0.1:8080/v1"
                .to_owned(),
        ),
    }
}
