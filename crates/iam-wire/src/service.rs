use s3_wire::auth::SigningService;

/// A service whose actions are requested through the Query API.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Service {
    /// AWS Identity and Access Management.
    Iam,
    /// AWS Security Token Service.
    Sts,
    /// The actions that only this server has; their requests are signed for IAM.
    Slipway,
}

impl Service {
    /// All services.
    pub const ALL: [Self; 3] = [Self::Iam, Self::Sts, Self::Slipway];

    /// Returns the value of `Version` that asks for this service.
    pub const fn version(self) -> &'static str {
        match self {
            Self::Iam => "2010-05-08",
            Self::Sts => "2011-06-15",
            Self::Slipway => "slipway-1",
        }
    }

    /// Returns the service that a value of `Version` asks for.
    pub fn of_version(version: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|service| service.version() == version)
    }

    /// Returns the XML namespace of the service's answers and errors.
    pub const fn namespace(self) -> &'static str {
        match self {
            Self::Iam => "https://iam.amazonaws.com/doc/2010-05-08/",
            Self::Sts => "https://sts.amazonaws.com/doc/2011-06-15/",
            Self::Slipway => "urn:slipway:1",
        }
    }

    /// Returns the service name that requests are signed for.
    pub const fn signed_for(self) -> SigningService {
        match self {
            Self::Iam | Self::Slipway => SigningService::Iam,
            Self::Sts => SigningService::Sts,
        }
    }
}
