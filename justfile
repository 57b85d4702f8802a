# Aliases for those who have `just`; everything is `cargo xtask …`.

default:
    @cargo xtask help

check:
    cargo xtask check

prove *args:
    cargo xtask prove {{args}}

test *args:
    cargo xtask test {{args}}

lint:
    cargo xtask lint

fix:
    cargo xtask fix

coverage:
    cargo xtask coverage

bench *args:
    cargo xtask bench {{args}}

dev *args:
    cargo xtask dev {{args}}
