"""`python -m cli COMMAND`, which is what `./tandem COMMAND` runs."""

from cli.main import tandem

if __name__ == "__main__":
    tandem.main(prog_name="./tandem")
