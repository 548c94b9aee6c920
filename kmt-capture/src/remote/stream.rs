//! Frames of a recorder on the target, into the file.

use std::time::{Duration, Instant};

use super::connection::{Came, Connection};
use kmt_common::tell;

use super::progress::Progress;
use super::space::{Left, Space};
use super::verdict::Passing;
use crate::failure::Result;
use crate::output::Output;
use crate::record::line::{DATA, END, HEADER_LEN, STATUS, STOP};

/// Longest line of status.
const STATUS_MAX: usize = 512;
/// Silence of the target after which its line counts as dropped: a recorder sends its status each second.
const SILENCE: Duration = Duration::from_secs(20);
/// Time to write the end of the file, after which a target that still sends is cut off.
const ENDING: Duration = Duration::from_secs(120);
/// Bytes that a recording may have beyond the limit that it was given.
const BEYOND: u64 = 1 << 20;

/// End of a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// The target calls the file complete.
    Complete,
    /// The target was asked to end it for lack of space here, and calls it complete.
    Stopped,
    /// It was cut: there is just enough space for the end of the file.
    Full,
    /// Text follows: the recorder failed.
    Text,
    /// The stream was cut, with the reason.
    Cut(String),
}

/// Limits of a recording, which a target may not keep.
#[derive(Debug, Clone, Copy, Default)]
pub struct StreamBounds {
    /// Longest time of the recording.
    pub duration: Option<Duration>,
    /// Most bytes of the file.
    pub max_size: Option<u64>,
}

/// The file that a recording goes to.
pub struct Receiver {
    /// The file.
    pub output: Output,
    /// Check of a pipe; a file is checked when it is complete.
    pub passing: Option<Passing>,
    /// Space for it.
    pub space: Space,
}

impl Receiver {
    /// For an output without bytes.
    pub fn new(output: Output) -> Self {
        let passing = output.unfinished().is_none().then(Passing::new);
        Self { space: Space::of(&output), passing, output }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(passing) = &mut self.passing {
            passing.take(bytes);
        }
        self.output.write(bytes)
    }
}

/// Position in the frames.
#[derive(Debug, Default)]
struct Frames {
    /// Bytes of the content of a data frame that are missing.
    data_left: usize,
    /// The last frame came.
    is_over: bool,
}

impl Frames {
    /// Takes whole frames and parts of data from the begin of `bytes`; true if something else follows.
    fn feed(&mut self, bytes: &mut Vec<u8>, to: &mut Receiver, progress: &mut Progress) -> Result<bool> {
        let mut at = 0;
        let mut is_text = false;
        while !self.is_over {
            let rest = bytes.get(at..).unwrap_or_default();
            if self.data_left > 0 {
                let part = rest.get(..self.data_left).unwrap_or(rest);
                if part.is_empty() {
                    break;
                }
                to.write(part)?;
                self.data_left -= part.len();
                at += part.len();
                continue;
            }
            let Some(&[kind, a, b, c, d]) = rest.first_chunk::<HEADER_LEN>() else {
                is_text = rest.first().is_some_and(|kind| ![DATA, STATUS, END].contains(kind));
                break;
            };
            let len = u32::from_le_bytes([a, b, c, d]) as usize;
            match kind {
                DATA => self.data_left = len,
                END if len == 0 => self.is_over = true,
                STATUS if len <= STATUS_MAX => {
                    let Some(text) = rest.get(HEADER_LEN..HEADER_LEN + len) else { break };
                    progress.show(text);
                    at += len;
                }
                _ => {
                    is_text = true;
                    break;
                }
            }
            at += HEADER_LEN;
        }
        bytes.drain(..at);
        Ok(is_text)
    }
}

/// Receives a recording until it ends, or is cut. Ctrl-C asks the target to end it; the second one cuts it.
/// If space gets short, the target is asked to end it, and cut off if it does not.
pub fn receive(line: &mut Connection, to: &mut Receiver, bounds: StreamBounds) -> Result<StreamEnd> {
    let mut frames = Frames::default();
    let cut = |reason: String| Ok(StreamEnd::Cut(reason));
    let mut end_by = bounds.duration.map(|duration| Instant::now() + duration + ENDING);
    let (mut is_asked, mut is_stopped) = (false, false);
    line.begin_beats();
    loop {
        let mut bytes = std::mem::take(&mut line.unread);
        let is_text = frames.feed(&mut bytes, to, &mut line.messages.progress)?;
        line.unread = bytes;
        if frames.is_over || is_text {
            return Ok(match is_text {
                true => StreamEnd::Text,
                false if is_stopped => StreamEnd::Stopped,
                false => StreamEnd::Complete,
            });
        }
        match to.space.left(to.output.len()) {
            Left::Enough => {}
            Left::End => return Ok(StreamEnd::Full),
            Left::Little if is_stopped => {}
            Left::Little => {
                is_stopped = true;
                end_by = Some(Instant::now() + ENDING);
                line.messages.progress.clear();
                tell!("warning: the recording is stopped: {}", to.space.reason());
                line.send(&[STOP, b'\n'])?;
            }
        }
        if bounds.max_size.is_some_and(|max| to.output.len() > max.saturating_add(BEYOND)) {
            return cut("the target sends more than --max-size".to_owned());
        }
        if end_by.is_some_and(|by| Instant::now() > by) {
            return cut("the target does not end the recording".to_owned());
        }
        match line.wait(Some(Instant::now() + SILENCE)) {
            Came::Bytes => {}
            Came::End => return cut("the connection ended".to_owned()),
            Came::Nothing => return cut(format!("the target sent nothing for {} s", SILENCE.as_secs())),
            Came::Asked if is_asked => return cut("interrupted a second time".to_owned()),
            Came::Asked => {
                is_asked = true;
                end_by = Some(Instant::now() + ENDING);
                line.send(&[STOP, b'\n'])?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::line::header;

    fn feed(chunks: &[&[u8]]) -> (Vec<u8>, bool, bool, Vec<u8>) {
        let path = std::env::temp_dir().join(format!(
            "kmt-frames-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
        let mut to = Receiver::new(Output::create(&path, true).unwrap());
        let (mut frames, mut progress, mut unread) = (Frames::default(), Progress::new(true), Vec::new());
        let mut is_text = false;
        for chunk in chunks {
            unread.extend_from_slice(chunk);
            is_text |= frames.feed(&mut unread, &mut to, &mut progress).unwrap();
        }
        to.output.finish().unwrap();
        let written = std::fs::read(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        (written, frames.is_over, is_text, unread)
    }

    fn frame(kind: u8, content: &[u8]) -> Vec<u8> {
        [&header(kind, content.len()), content].concat()
    }

    #[test]
    fn frames_are_taken_wherever_the_line_cuts_them() {
        let stream = [
            frame(DATA, b"abc"),
            frame(STATUS, b"5 events"),
            frame(DATA, b""),
            frame(DATA, b"defg"),
            frame(END, b""),
            b"KMT-1 status 0\n".to_vec(),
        ]
        .concat();
        for step in 1..stream.len() {
            let chunks: Vec<&[u8]> = stream.chunks(step).collect();
            assert_eq!(
                feed(&chunks),
                (b"abcdefg".to_vec(), true, false, b"KMT-1 status 0\n".to_vec()),
                "{step}"
            );
        }
    }

    #[test]
    fn what_is_no_frame_is_text_and_is_not_written() {
        assert_eq!(feed(&[b"sh: not found\n"]), (Vec::new(), false, true, b"sh: not found\n".to_vec()));
        assert_eq!(feed(&[b"K"]), (Vec::new(), false, true, b"K".to_vec()));
        let long = [&header(STATUS, 1 << 20)[..], b"x"].concat();
        assert_eq!(feed(&[&long]), (Vec::new(), false, true, long.clone()));
        let end = header(END, 3);
        assert_eq!(feed(&[&end]), (Vec::new(), false, true, end.to_vec()));
    }
}
