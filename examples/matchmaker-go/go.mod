module maestro.example/matchmaker

go 1.19
