"""A PostgreSQL as providers of managed services run it.

Only TLS is accepted, the superuser is the provider's, time limits are short, sessions are few. The broker's role owns
its database and may do nothing else; extensions are refused.
"""

import datetime
import ipaddress
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote, urlencode

import psycopg
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from psycopg import sql

from mqbroker.embedded.servers import binaries, postgres
from tests import packages

# What the provider's file of parameters says; an own session of the broker may set the first three for itself.
PARAMETERS = """
statement_timeout = '2s'
idle_in_transaction_session_timeout = '1s'
lock_timeout = '1s'
search_path = '"$user", public, extensions'
max_connections = {sessions}
ssl = on
ssl_cert_file = '{folder}/server.pem'
ssl_key_file = '{folder}/server.key'
shared_preload_libraries = 'pg_stat_statements'
log_statement = 'ddl'
log_line_prefix = '%a: '
"""
ONLY_TLS = "hostssl all all 127.0.0.1/32 scram-sha-256\n"
SESSIONS = 50
# The names of the two roles: the provider's customer, and the broker.
CUSTOMER, BROKER, DATABASE = "customer", "broker", "broker"
# For the sessions of the test: a busy machine copies a database slowly.
PATIENT = {"options": "-c statement_timeout=0"}
MASTER = "CREATE ROLE {} LOGIN CREATEDB CREATEROLE PASSWORD {} IN ROLE pg_monitor"
# What the customer types, from the page on deployment.
STEPS = (
    "CREATE ROLE {role} LOGIN PASSWORD {password}",
    "GRANT {role} TO CURRENT_USER",
    "CREATE DATABASE {database} OWNER {role} ENCODING 'UTF8' LOCALE 'C' TEMPLATE template0",
    "REVOKE CONNECT ON DATABASE {database} FROM PUBLIC",
)
# A provider has a list of extensions; none of them is the broker's.
REFUSING = """
CREATE EXTENSION pg_stat_statements;
CREATE FUNCTION pg_catalog.refuse_by_provider() RETURNS event_trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'permission denied by the provider: ' || tg_tag;
END $$;
CREATE EVENT TRIGGER refuse_by_provider ON ddl_command_start
    WHEN TAG IN ('CREATE EXTENSION', 'CREATE PUBLICATION', 'CREATE SUBSCRIPTION', 'CREATE SERVER', 'CREATE CAST')
    EXECUTE FUNCTION pg_catalog.refuse_by_provider();
"""


class Managed(postgres.Server):
    """The server. `certificates` has the provider's certificate authority, as `ca.pem`."""

    settings: ClassVar = {"unix_socket_directories": ""}

    def __init__(self, data_folder: Path, certificates: Path) -> None:
        super().__init__(data_folder)
        self.certificates = certificates

    def url_of(self, user: str, database: str = DATABASE, **options: str) -> str:
        """The URL for a role, with the password that all roles have, checking the server's certificate."""
        place = f"127.0.0.1:{self.folder.port('postgres')}"
        tls = {"sslmode": "verify-full", "sslrootcert": str(self.certificates / "ca.pem"), **options}
        return (
            f"postgresql://{user}:{self.folder.secret('postgres')}@{place}/{database}?{urlencode(tls, quote_via=quote)}"
        )

    @property
    def url(self) -> str:
        """The value of the broker's DATABASE_URL."""
        return self.url_of(BROKER)

    def hand_over(self) -> None:
        """Makes the customer's role; then the customer makes the broker's role and database."""
        password = sql.Literal(self.folder.secret("postgres"))
        with psycopg.connect(self.url_of("postgres", "postgres", **PATIENT), autocommit=True) as provider:
            provider.execute(sql.SQL(MASTER).format(sql.Identifier(CUSTOMER), password))
        names = {"role": sql.Identifier(BROKER), "database": sql.Identifier(DATABASE), "password": password}
        with psycopg.connect(self.url_of(CUSTOMER, "postgres", **PATIENT), autocommit=True) as customer:
            for step in STEPS:
                customer.execute(sql.SQL(step).format(**names))
        with psycopg.connect(self.url_of("postgres", **PATIENT), autocommit=True) as provider:
            provider.execute(REFUSING)

    def log(self) -> str:
        """What PostgreSQL has logged: errors, and statements that change the schema or roles."""
        return self.folder.log("postgres").read_text()

    def _find_binaries(self) -> Path:
        # Not those of the wheel, which know no TLS.
        fit = (found for found in binaries.system_folders() if binaries.major_version(found) >= binaries.OLDEST_MAJOR)
        return next(fit, None) or packages.skip_for_want_of("postgresql", "A PostgreSQL with TLS")

    def _make(self) -> None:
        super()._make()
        with (self.data / "postgresql.conf").open("a") as opened:
            opened.write(PARAMETERS.format(sessions=SESSIONS, folder=self.data))
        (self.data / "pg_hba.conf").write_text(ONLY_TLS)
        for name in ("server.pem", "server.key"):
            (self.data / name).write_bytes((self.certificates / name).read_bytes())
            (self.data / name).chmod(0o600)
        self._own(self.data)


def certify(folder: Path) -> Path:
    """Makes a certificate authority `ca.pem`, and `server.pem` with `server.key` for 127.0.0.1, in a folder."""
    authority, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    issuer, subject = name("authority of the tests"), name("database of the tests")
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    own = certificate(issuer, issuer, authority).add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
    servers = certificate(subject, issuer, key).add_extension(address, False)
    for file, made in (("ca.pem", own), ("server.pem", servers)):
        signed = made.sign(authority, hashes.SHA256())
        (folder / file).write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    (folder / "server.key").write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return folder


def name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, common)])


def certificate(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    """A certificate of a key for a month, which is not signed yet."""
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=30))
    )
