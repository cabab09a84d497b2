//! Texts with secrets, from a private file or from the output of a command.

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use zeroize::Zeroizing;

use crate::credentials;
use crate::limits::{SECRET_COMMAND_PAUSE, SECRET_COMMAND_TIME_MAX, SECRET_TEXT_BYTES_MAX};
use crate::text::unreadable;

/// Reads a file that no other user may read. `content` says what is in it, for errors.
pub fn of_file(path: &Path, content: &str) -> Result<Zeroizing<String>, String> {
    let file = fs::File::open(path).map_err(|e| unreadable(&e))?;
    credentials::check_private(&file, content)?;
    let mut text = Zeroizing::new(String::new());
    read(file, &mut text).map(|()| text)
}

fn read(from: impl std::io::Read, text: &mut String) -> Result<(), String> {
    let most = SECRET_TEXT_BYTES_MAX as u64;
    let length = from.take(most + 1).read_to_string(text).map_err(|e| unreadable(&e))?;
    if length > SECRET_TEXT_BYTES_MAX {
        return Err(format!("it is longer than {most} bytes"));
    }
    Ok(())
}

/// Runs a command, whose words are separated by spaces, and returns its output. `content` says what
/// that is, for errors.
pub fn of_command(command: &str, content: &str) -> Result<Zeroizing<String>, String> {
    let mut words = command.split_ascii_whitespace();
    let program = words.next().ok_or("there is no command: give the path of a program")?;
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("it cannot be run: {e}"))?;
    let end = Instant::now() + SECRET_COMMAND_TIME_MAX;
    let printed = printed(&mut child, end, content);
    if printed.is_err() {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let status = wait(&mut child, end, content);
    let text = printed?;
    let status = status?;
    if status.success() { Ok(text) } else { Err(format!("it failed ({status}); what it says is in the log")) }
}

/// Returns the text that a command prints until it closes its output; an error if that takes longer
/// than until `end`.
fn printed(child: &mut Child, end: Instant, content: &str) -> Result<Zeroizing<String>, String> {
    let output = child.stdout.take().ok_or("its output cannot be read")?;
    let (sender, receiver) = mpsc::channel();
    // It stays as long as any process holds the output open.
    let reading = move || {
        let mut text = Zeroizing::new(String::new());
        let _ = sender.send(read(output, &mut text).map(|()| text));
    };
    let thread = thread::Builder::new().name("secret-text".to_owned()).spawn(reading);
    thread.map_err(|e| format!("cannot start a thread to read its output: {e}"))?;
    let left = end.saturating_duration_since(Instant::now());
    receiver.recv_timeout(left).unwrap_or_else(|_| Err(too_slow(content)))
}

/// Waits for the end of a command, and kills it if it has not ended at `end`.
fn wait(child: &mut Child, end: Instant, content: &str) -> Result<ExitStatus, String> {
    let failed = |e: std::io::Error| format!("its end cannot be waited for: {e}");
    while Instant::now() < end {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        thread::sleep(SECRET_COMMAND_PAUSE);
    }
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().map_err(failed)?;
    Err(too_slow(content))
}

fn too_slow(content: &str) -> String {
    format!("it has not printed {content} and ended within {} s", SECRET_COMMAND_TIME_MAX.as_secs())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const KEY: &str = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

    #[test]
    fn a_file_is_private_and_short() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("key");
        let read = |text: &str, mode| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            of_file(&path, "the master key")
        };
        assert_eq!(*read(KEY, 0o600).unwrap(), KEY);
        assert_eq!(*read(KEY, 0o400).unwrap(), KEY);
        assert!(read(KEY, 0o604).unwrap_err().contains("contains the master key: chmod 600"));
        assert!(read(&"#".repeat(70_000), 0o600).unwrap_err().contains("longer than"));
    }

    #[test]
    fn a_command_prints_the_key() {
        let dir = tempfile::tempdir().unwrap();
        let script = |text: &str| {
            let path = dir.path().join("script");
            fs::write(&path, text).unwrap();
            format!("/bin/sh {} word", path.display())
        };
        assert_eq!(*of_command(&script("echo \"$#$1\""), "the key").unwrap(), "1word\n");
        assert!(
            of_command(&script("echo x; exit 3"), "the key")
                .unwrap_err()
                .contains("it failed (exit status: 3)")
        );
        assert!(of_command("/nonexistent/program", "the key").unwrap_err().contains("cannot be run"));
        assert!(of_command(" ", "the key").unwrap_err().contains("no command"));
        assert!(of_command(&script("exec cat /dev/zero"), "the key").unwrap_err().contains("longer than"));
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let end = Instant::now() + SECRET_COMMAND_PAUSE;
        for (text, prints) in [("exec sleep 60", false), ("exec sleep 60 >&-", true)] {
            let mut child =
                Command::new("/bin/sh").args(["-c", text]).stdout(Stdio::piped()).spawn().unwrap();
            let end = if prints { Instant::now() + 10 * SECRET_COMMAND_PAUSE } else { end };
            assert_eq!(printed(&mut child, end, "it").is_ok(), prints, "{text}");
            assert!(wait(&mut child, end, "it").unwrap_err().contains("within"), "{text}");
        }
    }
}
