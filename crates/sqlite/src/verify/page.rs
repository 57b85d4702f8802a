//! Every page of a database file against its checksum, read as plain bytes.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use crate::page;

/// SQLite never uses the page with this byte.
const PENDING_BYTE: u64 = 0x4000_0000;
/// A page that a server writes at this very moment is read again so often.
const TRIES: u32 = 200;

/// The number of the first page that is not as it was written.
pub(super) fn first_bad(path: &Path) -> io::Result<Option<u64>> {
    let mut header = [0; 100];
    let mut file = File::open(path)?;
    file.read_exact(&mut header)?;
    let size = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65_536,
        size => u64::from(size),
    };
    if size < 512 || !size.is_power_of_two() {
        return Ok(Some(1));
    }
    let pages = file.metadata()?.len() / size;
    file.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::with_capacity(1 << 18, file);
    let mut bytes = vec![0; usize::try_from(size).expect("at most 64 KiB")];
    for number in 0..pages {
        reader.read_exact(&mut bytes)?;
        let offset = number * size;
        if offset != PENDING_BYTE / size * size && !is_sound(&bytes, offset) && !becomes_sound(path, &mut bytes, offset)? {
            return Ok(Some(number + 1));
        }
    }
    Ok(None)
}

/// A page of zeros was never written: the file was only made longer.
fn is_sound(bytes: &[u8], offset: u64) -> bool {
    page::is_sound(bytes, i64::try_from(offset).unwrap_or(i64::MAX)) || bytes.iter().all(|byte| *byte == 0)
}

fn becomes_sound(path: &Path, bytes: &mut [u8], offset: u64) -> io::Result<bool> {
    let mut file = File::open(path)?;
    for _ in 0..TRIES {
        std::thread::yield_now();
        file.seek(SeekFrom::Start(offset))?;
        file.read_exact(bytes)?;
        if is_sound(bytes, offset) {
            return Ok(true);
        }
    }
    Ok(false)
}
