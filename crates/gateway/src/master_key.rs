//! Finds the master keys, with which secrets of users are sealed (decision 0041).

use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use iam::MasterKeys;
use zeroize::Zeroizing;

use crate::config::ServeOptions;
use crate::credentials;
use crate::limits::{MASTER_KEY_BYTES_MAX, MASTER_KEY_COMMAND_PAUSE, MASTER_KEY_COMMAND_TIME_MAX};
use crate::storage::NULL;
use crate::text::unreadable;

/// The variable that may have the text itself.
pub const VARIABLE: &str = "SLIPWAY_MASTER_KEY";

/// Where master keys may be, and the tree that they are for.
#[derive(Debug)]
pub struct Given<'g> {
    /// DIR; `None` for a storage that keeps nothing.
    pub dir: Option<&'g Path>,
    /// `--master-key-file`.
    pub file: Option<&'g Path>,
    /// `--master-key-command`.
    pub command: Option<&'g str>,
}

impl<'g> From<&'g ServeOptions> for Given<'g> {
    fn from(options: &'g ServeOptions) -> Self {
        Self {
            dir: (options.dir != NULL).then_some(Path::new(&options.dir)),
            file: options.master_key_file.as_deref(),
            command: options.master_key_command.as_deref(),
        }
    }
}

/// Finds the master keys: in the file, otherwise in what the command prints, otherwise in the
/// environment. `None` if none are given.
pub fn find(given: &Given<'_>, env: impl Fn(&str) -> Option<String>) -> Result<Option<MasterKeys>, String> {
    let (text, whence) = match (given.file, given.command) {
        (Some(_), Some(_)) => {
            return Err(
                "--master-key-file and --master-key-command contradict each other: leave out one of the two"
                    .to_owned(),
            );
        }
        (Some(file), None) => {
            let whence = format!("--master-key-file {}", file.display());
            let text = outside(file, given.dir).and_then(|()| of_file(file));
            (text.map_err(|why| format!("{whence}: {why}"))?, whence)
        }
        (None, Some(command)) => {
            let text = of_command(command).map_err(|why| format!("--master-key-command {command}: {why}"))?;
            (text, format!("--master-key-command {command}"))
        }
        (None, None) => match env(VARIABLE).filter(|text| !text.is_empty()) {
            Some(text) => (Zeroizing::new(text), VARIABLE.to_owned()),
            None => return Ok(None),
        },
    };
    MasterKeys::read(&text)
        .map(Some)
        .map_err(|why| format!("{whence}: {why}: `slipway master-key new FILE` makes one"))
}

/// Refuses a file in the tree: whoever has a copy of the tree would have the key to its secrets,
/// and in a bucket it would be an object.
fn outside(file: &Path, dir: Option<&Path>) -> Result<(), String> {
    let Some(dir) = dir else { return Ok(()) };
    // A file or a DIR that is not there is found out elsewhere.
    let (Ok(file), Ok(dir)) = (file.canonicalize(), dir.canonicalize()) else {
        return Ok(());
    };
    if file.starts_with(&dir) {
        return Err(format!(
            "the file lies in {}, so that each copy of that directory could be opened with it: move it elsewhere",
            dir.display()
        ));
    }
    Ok(())
}

fn of_file(path: &Path) -> Result<Zeroizing<String>, String> {
    let file = fs::File::open(path).map_err(|e| unreadable(&e))?;
    credentials::check_private(&file, "the master key")?;
    let mut text = Zeroizing::new(String::new());
    read(file, &mut text).map(|()| text)
}

fn read(from: impl std::io::Read, text: &mut String) -> Result<(), String> {
    let most = MASTER_KEY_BYTES_MAX as u64;
    let length = from.take(most + 1).read_to_string(text).map_err(|e| unreadable(&e))?;
    if length > MASTER_KEY_BYTES_MAX {
        return Err(format!("it is longer than {most} bytes, far more than master keys are"));
    }
    Ok(())
}

/// Runs a command, whose words are separated by spaces, and returns what it prints.
fn of_command(command: &str) -> Result<Zeroizing<String>, String> {
    let mut words = command.split_ascii_whitespace();
    let program = words.next().ok_or("there is no command: give the path of a program")?;
    let mut child = Command::new(program)
        .args(words)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("it cannot be run: {e}"))?;
    let end = Instant::now() + MASTER_KEY_COMMAND_TIME_MAX;
    let printed = printed(&mut child, end);
    if printed.is_err() {
        // It may have ended by itself.
        let _ = child.kill();
    }
    let status = wait(&mut child, end);
    let text = printed?;
    let status = status?;
    if status.success() { Ok(text) } else { Err(format!("it failed ({status}); what it says is in the log")) }
}

/// What a command prints until it closes its output, or a time has come.
fn printed(child: &mut Child, end: Instant) -> Result<Zeroizing<String>, String> {
    let output = child.stdout.take().ok_or("its output cannot be read")?;
    let (sender, receiver) = mpsc::channel();
    // It stays as long as any process holds the output open.
    let reading = move || {
        let mut text = Zeroizing::new(String::new());
        let _ = sender.send(read(output, &mut text).map(|()| text));
    };
    let thread = thread::Builder::new().name("master-key".to_owned()).spawn(reading);
    thread.map_err(|e| format!("cannot start a thread to read its output: {e}"))?;
    let left = end.saturating_duration_since(Instant::now());
    receiver.recv_timeout(left).unwrap_or_else(|_| Err(too_slow()))
}

/// Waits for the end of a command, and ends it if it takes too long.
fn wait(child: &mut Child, end: Instant) -> Result<ExitStatus, String> {
    let failed = |e: std::io::Error| format!("its end cannot be waited for: {e}");
    while Instant::now() < end {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        thread::sleep(MASTER_KEY_COMMAND_PAUSE);
    }
    // It may have ended by itself.
    let _ = child.kill();
    child.wait().map_err(failed)?;
    Err(too_slow())
}

fn too_slow() -> String {
    format!("it has not printed a master key and ended within {} s", MASTER_KEY_COMMAND_TIME_MAX.as_secs())
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
            of_file(&path)
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
        assert_eq!(*of_command(&script("echo \"$#$1\"")).unwrap(), "1word\n");
        assert!(of_command(&script("echo x; exit 3")).unwrap_err().contains("it failed (exit status: 3)"));
        assert!(of_command("/nonexistent/program").unwrap_err().contains("cannot be run"));
        assert!(of_command(" ").unwrap_err().contains("no command"));
        assert!(of_command(&script("exec cat /dev/zero")).unwrap_err().contains("longer than"));
    }

    #[test]
    fn a_command_that_hangs_is_ended() {
        let end = Instant::now() + MASTER_KEY_COMMAND_PAUSE;
        for (text, prints) in [("exec sleep 60", false), ("exec sleep 60 >&-", true)] {
            let mut child =
                Command::new("/bin/sh").args(["-c", text]).stdout(Stdio::piped()).spawn().unwrap();
            let end = if prints { Instant::now() + 10 * MASTER_KEY_COMMAND_PAUSE } else { end };
            assert_eq!(printed(&mut child, end).is_ok(), prints, "{text}");
            assert!(wait(&mut child, end).unwrap_err().contains("within"), "{text}");
        }
    }
}
