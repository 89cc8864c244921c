module weft.dev/user_probes_go

go 1.21
