module weft.dev/tests/local/attached_go

go 1.19
