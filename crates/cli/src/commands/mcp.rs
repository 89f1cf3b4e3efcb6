//! `towline mcp`: Towline's own tools for the agent of one attempt, on standard input and output.

use std::io::{BufRead, Write};

use towline_app::{Context, Error, McpBridge};

/// Serves until standard input ends.
pub(crate) async fn run(context: &Context) -> Result<(), Error> {
    let bridge = McpBridge::of(context)?;
    for line in std::io::stdin().lock().lines() {
        let Ok(line) = line else { break };
        if let Some(answer) = bridge.answer(&line).await {
            let mut stdout = std::io::stdout().lock();
            if stdout.write_all(&answer).and_then(|()| stdout.flush()).is_err() {
                break;
            }
        }
    }
    Ok(())
}
