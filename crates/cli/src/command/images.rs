//! `images`: the registered environments that commands may run in.

use clap::{Args, Subcommand};
use clap_complete::ArgValueCompleter;
use runvoy_wire::{Image, RegisterImageRequest};

use crate::complete;
use crate::failure::Failure;
use crate::global::Format;
use crate::session::Session;
use crate::table::{Cell, facts, list};
use crate::terminal::Tone;

const EXAMPLES: &str = "\
Examples:
  runvoy images register alpine:3.20
  runvoy images register ghcr.io/org/tools:1 --cpu 0.5 --memory 1Gi
  runvoy images list
  runvoy images show alpine:3.20
  runvoy images unregister alpine:3.20";

/// No image needs fewer CPU units: a smaller number is meant as cores.
const LEAST_UNITS: u32 = 64;

/// Arguments of `images`.
#[derive(Debug, Clone, Args)]
#[command(before_help = EXAMPLES)]
pub struct ImagesArgs {
    #[command(subcommand)]
    command: ImagesCommand,
}

/// What to do with images.
#[derive(Debug, Clone, Subcommand)]
enum ImagesCommand {
    /// Register an image for commands
    #[command(
        before_help = "Examples:\n  runvoy images register alpine:3.20\n  runvoy images register ghcr.io/org/tools:1 --cpu 0.5 --memory 1Gi"
    )]
    Register(RegisterArgs),
    /// List the images
    #[command(visible_alias = "ls", before_help = "Examples:\n  runvoy images list --json")]
    List,
    /// Show an image
    #[command(before_help = "Examples:\n  runvoy images show alpine:3.20")]
    Show {
        /// Name or id of the image
        #[arg(add = ArgValueCompleter::new(complete::images))]
        image: String,
    },
    /// Unregister an image, or all with its name and tag
    #[command(before_help = "Examples:\n  runvoy images unregister alpine:3.20 --yes")]
    Unregister {
        /// Name or id of the image
        #[arg(add = ArgValueCompleter::new(complete::images))]
        image: String,
    },
}

/// What an image is to be.
#[derive(Debug, Clone, Args)]
struct RegisterArgs {
    /// Image reference: [HOST/]NAME[:TAG]
    image: String,
    /// Use it for commands that name no image
    #[arg(long)]
    set_default: bool,
    /// Cores (0.5, 500m), or units of 1/1024
    #[arg(long, value_name = "CPU", value_parser = cpu_units)]
    cpu: Option<u32>,
    /// Memory (512Mi, 1Gi), or a number of MiB
    #[arg(long, value_name = "SIZE", value_parser = memory_mib)]
    memory: Option<u32>,
    /// Platform, such as Linux/ARM64
    #[arg(long, value_name = "PLATFORM")]
    runtime_platform: Option<String>,
    /// Cloud role of the commands
    #[arg(long, value_name = "NAME")]
    task_role: Option<String>,
    /// Cloud role that starts the container
    #[arg(long, value_name = "NAME")]
    task_exec_role: Option<String>,
}

impl ImagesArgs {
    /// Whether it changes something on the server.
    pub(crate) fn changes(&self) -> bool {
        match &self.command {
            ImagesCommand::List | ImagesCommand::Show { .. } => false,
            ImagesCommand::Register(_) | ImagesCommand::Unregister { .. } => true,
        }
    }

    pub(crate) async fn execute(self, session: &Session) -> Result<u8, Failure> {
        match self.command {
            ImagesCommand::Register(args) => {
                let answer = session.connect().await?.register_image(&args.request()).await?;
                let told = format!("image {}: {}", answer.image, answer.message);
                session.report(&answer, answer.image_id.as_deref().unwrap_or(&answer.image), &told)
            }
            ImagesCommand::List => show_all(session).await,
            ImagesCommand::Show { image } => {
                let image = session.connect().await?.image(&image).await?;
                session.show(&image, || vec![image.image_id.clone()], || describe(&image, session.terminal.stdout_colour))?;
                Ok(0)
            }
            ImagesCommand::Unregister { image } => unregister(session, &image).await,
        }
    }
}

impl RegisterArgs {
    fn request(self) -> RegisterImageRequest {
        RegisterImageRequest {
            image: self.image,
            is_default: self.set_default.then_some(true),
            task_role_name: self.task_role,
            task_execution_role_name: self.task_exec_role,
            cpu: self.cpu,
            memory: self.memory,
            runtime_platform: self.runtime_platform,
        }
    }
}

/// CPU units of 1/1024 core: `512`, or as cores `0.5` and `500m`.
fn cpu_units(text: &str) -> Result<u32, String> {
    let expected = || format!("expected cores such as 0.5 or 500m, or units such as 512, not `{text}`");
    let thousandths = match (text.strip_suffix('m'), text.split_once('.')) {
        (Some(thousandths), _) => thousandths.parse::<u64>().map_err(|_| expected())?,
        (None, Some((whole, part))) if (1..=3).contains(&part.len()) && part.bytes().all(|digit| digit.is_ascii_digit()) => {
            let whole: u64 = whole.parse().map_err(|_| expected())?;
            let part: u64 = format!("{part:0<3}").parse().map_err(|_| expected())?;
            whole.saturating_mul(1000).saturating_add(part)
        }
        (None, Some(_)) => return Err(expected()),
        (None, None) => {
            let units: u32 = text.parse().map_err(|_| expected())?;
            return match units {
                1..LEAST_UNITS => Err(format!("{units} would be {units}/1024 of a core: give {units}.0 for {units} cores")),
                units => Ok(units),
            };
        }
    };
    u32::try_from(thousandths.saturating_mul(1024) / 1000).map_err(|_| expected())
}

/// MiB: `512`, `512Mi`, `1Gi`.
fn memory_mib(text: &str) -> Result<u32, String> {
    let expected = || format!("expected a size such as 512Mi or 1Gi, or a number of MiB, not `{text}`");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "Mi" | "MiB" => 1,
        "Gi" | "GiB" => 1024,
        _ => return Err(expected()),
    };
    let number: u32 = digits.parse().map_err(|_| expected())?;
    number.checked_mul(unit).ok_or_else(expected)
}

async fn unregister(session: &Session, image: &str) -> Result<u8, Failure> {
    let client = session.connect().await?;
    let found = client.image(image).await?;
    let all = if image == found.image_id { vec![found] } else { with_its_reference(client.images().await?, &found) };
    let was_default = all.iter().any(|image| image.is_default == Some(true));
    session.confirm(&question(image, &all, was_default))?;
    let answer = client.unregister_image(image).await?;
    let mut told = format!("image {}: {}", answer.image, answer.message);
    if was_default && session.format() == Format::Table {
        // It is done, whatever comes of this question.
        let images = client.images().await.unwrap_or_default();
        if let Some(default) = images.iter().find(|image| image.is_default == Some(true)) {
            told.push_str(&format!("; the default is now {}", default.image));
        }
    }
    session.report(&answer, &answer.image, &told)
}

/// An image may be registered with several settings; named by its reference, all of them go.
fn with_its_reference(mut images: Vec<Image>, found: &Image) -> Vec<Image> {
    let reference = |image: &Image| (image.image_registry.clone(), image.image_name.clone(), image.image_tag.clone());
    let wanted = reference(found);
    images.retain(|image| image.image_id == found.image_id || image.image_name.is_some() && reference(image) == wanted);
    images
}

fn question(named: &str, images: &[Image], was_default: bool) -> String {
    let role = if was_default { ", the default" } else { "" };
    match images {
        [image] => format!("Unregister image {}{role}", image.image),
        _ => {
            let ids: Vec<&str> = images.iter().map(|image| image.image_id.as_str()).collect();
            let among = if was_default { "; one of them is the default" } else { "" };
            format!("Unregister all {} images {named} ({}){among}", ids.len(), ids.join(", "))
        }
    }
}

async fn show_all(session: &Session) -> Result<u8, Failure> {
    let images = session.connect().await?.images().await?;
    let table = || {
        let rows: Vec<Vec<Cell>> = images.iter().map(row).collect();
        list(&["", "IMAGE", "CPU UNITS", "MEMORY MIB", "PLATFORM", "RUNNERS", "ID"], &rows, session.terminal)
    };
    session.show(&images, || images.iter().map(|image| image.image_id.clone()).collect(), table)?;
    if images.is_empty() {
        session.note(Tone::Dim, "No images.");
    }
    Ok(0)
}

fn row(image: &Image) -> Vec<Cell> {
    let or_dash = |text: Option<String>| text.filter(|text| !text.is_empty()).unwrap_or_else(|| "-".to_owned());
    let mark = if image.is_default == Some(true) { Cell::new("*", Tone::Good) } else { Cell::from("") };
    vec![
        mark,
        (&image.image).into(),
        or_dash(image.cpu.map(|cpu| cpu.to_string())).into(),
        or_dash(image.memory.map(|memory| memory.to_string())).into(),
        or_dash(image.runtime_platform.clone()).into(),
        or_dash(Some(image.runners.join(" "))).into(),
        (&image.image_id).into(),
    ]
}

fn describe(image: &Image, colour: bool) -> String {
    facts(
        [
            ("image", Some(image.image.clone())),
            ("id", Some(image.image_id.clone())),
            ("default", (image.is_default == Some(true)).then(|| "yes".to_owned())),
            ("registry", image.image_registry.clone()),
            ("cpu", image.cpu.map(|cpu| cpu.to_string())),
            ("memory", image.memory.map(|memory| format!("{memory} MiB"))),
            ("platform", image.runtime_platform.clone()),
            ("task role", image.task_role_name.clone()),
            ("task exec role", image.task_execution_role_name.clone()),
            ("runners", Some(image.runners.join(" "))),
            ("created by", image.created_by.clone()),
            ("owners", Some(image.owned_by.join(" "))),
            ("created", Some(image.created_at.to_string())),
        ],
        colour,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unregistering_a_reference_asks_about_all_images_of_it() {
        let image = |id: &str, tag: &str| {
            let text = format!(
                r#"{{"image_id":"{id}","image":"alpine:{tag}","image_registry":"docker.io","image_name":"library/alpine","image_tag":"{tag}","owned_by":[],"created_at":"2026-01-03T14:22:19Z"}}"#
            );
            serde_json::from_str::<Image>(&text).expect("the contract's fields")
        };
        let all = vec![image("small", "3"), image("large", "3"), image("other", "2")];
        let named = with_its_reference(all, &image("small", "3"));
        assert_eq!(question("alpine:3", &named, true), "Unregister all 2 images alpine:3 (small, large); one of them is the default");
        assert_eq!(question("small", &named[..1], true), "Unregister image alpine:3, the default");
    }

    #[test]
    fn cpu_and_memory_are_taken_as_people_write_them() {
        for (text, units) in [("512", 512), ("0.5", 512), ("500m", 512), ("1.0", 1024), ("0.25", 256), ("2.125", 2176), ("4000m", 4096)] {
            assert_eq!(cpu_units(text), Ok(units), "{text}");
        }
        for (text, mib) in [("512", 512), ("512Mi", 512), ("1Gi", 1024), ("2GiB", 2048)] {
            assert_eq!(memory_mib(text), Ok(mib), "{text}");
        }
        for wrong in ["", "2", "m", "0.", ".5", "0.5m", "1,5", "-1", "0.1234", "1e3"] {
            assert!(cpu_units(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "Mi", "1.5Gi", "1G", "512M", "-1", "5000000Gi"] {
            assert!(memory_mib(wrong).is_err(), "{wrong}");
        }
        assert!(cpu_units("2").expect_err("two units").contains("2.0"));
    }

    #[test]
    fn the_default_is_marked_and_gaps_are_dashes() {
        let text = r#"[{"image_id":"local","image":"local","is_default":true,"owned_by":[],"created_at":"2026-01-03T14:22:19Z","runners":["process"]},
            {"image_id":"alpine:3-a1","image":"alpine:3","cpu":256,"memory":512,"owned_by":null,"created_at":"2026-01-03T14:22:19Z"}]"#;
        let images: Vec<Image> = serde_json::from_str(text).expect("the contract's fields");
        let rows: Vec<Vec<Cell>> = images.iter().map(row).collect();
        insta::assert_snapshot!(crate::table::render(&["", "IMAGE", "CPU UNITS", "MEMORY MIB", "PLATFORM", "RUNNERS", "ID"], &rows, None, false), @r"
           IMAGE     CPU UNITS  MEMORY MIB  PLATFORM  RUNNERS  ID
        *  local     -          -           -         process  local
           alpine:3  256        512         -         -        alpine:3-a1
        ");
    }
}
