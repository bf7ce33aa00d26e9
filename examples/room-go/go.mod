module maestro.example/room

go 1.19
