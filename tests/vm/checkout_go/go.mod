module weft.dev/checkout_go

go 1.21
