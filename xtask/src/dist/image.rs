//! Container image from nothing but the program, as an archive of an OCI image layout.
//!
//! OCI image specification 1.1: `oci-layout`, `index.json`, and blobs named by their SHA-256 digests.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::archive;
use super::platform::Platform;
use super::release::Release;

/// User and group of the image's processes: nobody.
const USER: &str = "65534:65534";

/// Blob of a layout: the fields of a descriptor.
struct Blob {
    digest: String,
    size: u64,
}

impl Blob {
    fn descriptor(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": self.digest, "size": self.size })
    }
}

/// Layout in a directory.
struct Layout {
    directory: PathBuf,
}

impl Layout {
    fn create(directory: &Path) -> Result<Self> {
        archive::clear(&directory.join("blobs/sha256"))?;
        Ok(Self { directory: directory.to_path_buf() })
    }

    /// Moves a file into the layout.
    fn add_file(&self, file: &Path) -> Result<Blob> {
        let digest = archive::sha256(file)?;
        let size = fs::metadata(file).with_context(|| format!("cannot read {}", file.display()))?.len();
        fs::rename(file, self.directory.join("blobs/sha256").join(&digest)).context("cannot move a blob")?;
        Ok(Blob { digest: format!("sha256:{digest}"), size })
    }

    fn add_document(&self, document: &Value) -> Result<Blob> {
        let file = self.directory.join("document.json");
        fs::write(&file, document.to_string()).context("cannot write a blob")?;
        self.add_file(&file)
    }
}

/// Writes the image of all `trees` (installed at `/usr`) to `to`; `work` is a directory for the layout.
pub(super) fn write(trees: &[(Platform, PathBuf)], release: &Release, work: &Path, to: &Path) -> Result<()> {
    archive::clear(work)?;
    let layout = Layout::create(&work.join("layout"))?;
    let mut manifests = Vec::new();
    for (platform, tree) in trees {
        manifests.push(add_platform(&layout, *platform, tree, release, work)?);
    }
    let images = json!({
        "schemaVersion": 2, "mediaType": "application/vnd.oci.image.index.v1+json", "manifests": manifests,
    });
    let mut index = layout.add_document(&images)?.descriptor("application/vnd.oci.image.index.v1+json");
    index["annotations"] = json!({ "org.opencontainers.image.ref.name": release.version });
    // With one platform a reference may be to its manifest: not every tool follows a second index.
    if let [single] = manifests.as_slice() {
        index = single.clone();
        index["annotations"] = json!({ "org.opencontainers.image.ref.name": release.version });
    }
    let top = json!({ "schemaVersion": 2, "manifests": [index] });
    fs::write(layout.directory.join("index.json"), top.to_string()).context("cannot write index.json")?;
    fs::write(layout.directory.join("oci-layout"), "{\"imageLayoutVersion\":\"1.0.0\"}")
        .context("cannot write oci-layout")?;
    archive::tar(&layout.directory, &["blobs", "index.json", "oci-layout"], release.epoch, to)
}

/// Adds the layer, the configuration and the manifest of one platform; returns the manifest's descriptor.
fn add_platform(layout: &Layout, platform: Platform, tree: &Path, release: &Release, work: &Path) -> Result<Value> {
    let root = work.join("root");
    archive::clear(&root.join("usr/bin"))?;
    fs::copy(tree.join("bin/linerate"), root.join("usr/bin/linerate")).context("cannot copy the program")?;
    let layer = work.join("layer.tar");
    archive::tar(&root, &["usr"], release.epoch, &layer)?;
    let contents = format!("sha256:{}", archive::sha256(&layer)?);
    let layer = layout.add_file(&archive::gzip(&layer, release.compression.gzip)?)?;
    let configuration = layout.add_document(&configuration(platform, &contents, release)?)?;
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": configuration.descriptor("application/vnd.oci.image.config.v1+json"),
        "layers": [layer.descriptor("application/vnd.oci.image.layer.v1.tar+gzip")],
    });
    let mut descriptor = layout.add_document(&manifest)?.descriptor("application/vnd.oci.image.manifest.v1+json");
    descriptor["platform"] = json!({ "architecture": platform.debian(), "os": "linux" });
    Ok(descriptor)
}

fn configuration(platform: Platform, contents: &str, release: &Release) -> Result<Value> {
    let created = release.date("+%Y-%m-%dT%H:%M:%SZ")?;
    Ok(json!({
        "created": created,
        "architecture": platform.debian(),
        "os": "linux",
        "config": {
            "User": USER,
            "ExposedPorts": { "5201/tcp": {}, "5201/udp": {} },
            "Env": ["PATH=/usr/bin"],
            "Entrypoint": ["/usr/bin/linerate"],
            "Cmd": ["serve"],
            "Labels": {
                "org.opencontainers.image.title": "linerate",
                "org.opencontainers.image.version": release.version,
                "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            },
        },
        "rootfs": { "type": "layers", "diff_ids": [contents] },
        "history": [{ "created": created, "created_by": "cargo xtask dist" }],
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dist::release::Compression;
    use crate::workspace::output_of;
    use std::process::Command;

    fn read(directory: &Path, digest: &Value) -> Value {
        let digest = digest.as_str().and_then(|text| text.strip_prefix("sha256:")).expect("a digest");
        let file = directory.join("blobs/sha256").join(digest);
        assert_eq!(archive::sha256(&file).ok().as_deref(), Some(digest));
        serde_json::from_slice(&fs::read(file).expect("a blob")).expect("a document")
    }

    #[test]
    fn the_index_leads_to_each_platform_s_program() {
        let top = std::env::temp_dir().join(format!("linerate-image-{}", std::process::id()));
        let trees: Vec<_> = Platform::ALL.map(|platform| (platform, top.join(platform.processor()))).into();
        for (platform, tree) in &trees {
            archive::clear(&tree.join("bin")).expect("writable");
            fs::write(tree.join("bin/linerate"), platform.processor()).expect("writable");
        }
        let release = Release {
            version: "1.2.3".to_owned(),
            revision: 1,
            compression: Compression::RELEASE,
            epoch: 1_700_000_000,
        };
        write(&trees, &release, &top.join("work"), &top.join("image.tar")).expect("an image");
        let unpacked = top.join("unpacked");
        archive::clear(&unpacked).expect("writable");
        let (image, to) = (top.join("image.tar"), unpacked.display().to_string());
        output_of(Command::new("tar").args(["--extract", "--directory", &to, "--file"]).arg(image)).expect("unpacks");
        let text = fs::read_to_string(unpacked.join("index.json")).expect("an index");
        let index: Value = serde_json::from_str(&text).expect("a document");
        assert_eq!(index["manifests"][0]["annotations"]["org.opencontainers.image.ref.name"], "1.2.3");
        let images = read(&unpacked, &index["manifests"][0]["digest"]);
        let names: Vec<_> =
            [0, 1].iter().map(|number| images["manifests"][number]["platform"]["architecture"].clone()).collect();
        assert_eq!(names, ["amd64", "arm64"]);
        let manifest = read(&unpacked, &images["manifests"][1]["digest"]);
        let configuration = read(&unpacked, &manifest["config"]["digest"]);
        assert_eq!(configuration["architecture"], "arm64");
        assert_eq!(configuration["created"], "2023-11-14T22:13:20Z");
        let layer = manifest["layers"][0]["digest"].as_str().expect("a digest").replace("sha256:", "blobs/sha256/");
        let mut tar = Command::new("tar");
        tar.args(["--extract", "--gzip", "--to-stdout", "--file", &layer, "usr/bin/linerate"]).current_dir(&unpacked);
        assert_eq!(output_of(&mut tar).ok().as_deref(), Some("aarch64"));
        fs::remove_dir_all(&top).expect("there");
    }
}
