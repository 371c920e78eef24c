//! Looking at a plugin without running it: what it is, what it asks for, and whether it would load.
use std::sync::Arc;
use std::time::{Duration, Instant};

use pi_session::figures::hex;
use sha2::{Digest, Sha256};

use super::component::{check_contract, contract_version, imports};
use super::grants::Grants;
use super::plugin::{Exports, PluginSource, check_known, describe};
use super::wakes::Patterns;
use super::{Limits, LoadError, Sandbox};

/// What a plugin says of itself, given a config.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Capabilities that it cannot do without.
    pub needs: Vec<String>,
    /// Capabilities that it uses if they are granted.
    pub can_use: Vec<String>,
    /// What wakes it.
    pub on: Vec<String>,
}

/// What is known of the bytes of a plugin.
#[derive(Debug)]
pub struct Inspection {
    /// Their SHA-256, hex.
    pub digest: String,
    /// How many they are.
    pub bytes: u64,
    /// A core module with its component type embedded, rather than a component.
    pub is_core: bool,
    /// The version of the contract that it was made for, if it can be seen.
    pub contract: Option<String>,
    /// What it imports.
    pub imports: Vec<String>,
    /// How long compiling it took.
    pub compiled_in: Option<Duration>,
    /// What it says of itself.
    pub description: Option<Description>,
    /// Why it would not load, whatever is granted.
    pub error: Option<LoadError>,
}

impl Sandbox {
    /// Looks at a plugin: compiles it (anew, to say how long that takes; what comes of it is kept for the next load), and
    /// asks it to describe itself with this config. Nothing need be granted for that.
    #[must_use]
    pub fn inspect(&self, bytes: &[u8], config_json: &str, limits: Limits) -> Inspection {
        let mut found = Inspection {
            digest: hex(&Sha256::digest(bytes)),
            bytes: bytes.len() as u64,
            is_core: bytes.starts_with(b"\0asm\x01\0\0\0"),
            contract: None,
            imports: Vec::new(),
            compiled_in: None,
            description: None,
            error: None,
        };
        let source = PluginSource {
            name: "inspected".into(),
            bytes: bytes.to_vec(),
            config_json: config_json.into(),
            grants: Vec::new(),
            limits,
            on: None,
        };
        found.error = self.look(&source, &mut found).err();
        found
    }

    fn look(&self, source: &PluginSource, found: &mut Inspection) -> Result<(), LoadError> {
        let begun = Instant::now();
        let component = self.compile(&found.digest, &source.bytes)?;
        found.compiled_in = Some(begun.elapsed());
        found.contract = contract_version(self.engine(), &component);
        found.imports = imports(self.engine(), &component);
        check_contract(self.engine(), &component)?;
        let machine = self.machine(&component, source)?;
        let said = describe(&machine, &Exports::of(&component)?, &source.config_json)?;
        found.description = Some(Description {
            name: said.name.clone(),
            version: said.version.clone(),
            needs: said.needs.clone(),
            can_use: said.can_use.clone(),
            on: said.on.clone(),
        });
        check_known(&said, &Arc::new(Grants::default()))?;
        Patterns::parse(&said.on).map_err(LoadError::Pattern)?;
        Ok(())
    }
}
