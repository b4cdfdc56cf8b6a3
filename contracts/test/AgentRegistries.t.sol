// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.37;

import {AgentIdentity} from "../src/doubles/AgentIdentity.sol";
import {AgentReputation} from "../src/doubles/AgentReputation.sol";
import {Vm, World} from "./World.sol";

/// The agent registries of the local chain do what ERC-8004 says of the parts that they have.
contract AgentRegistriesTest is World {
    AgentIdentity private identity;
    AgentReputation private reputation;
    address private reviewer = person("reviewer");
    address private other = person("other");
    address[] private reviewers;

    function setUp() public override {
        identity = new AgentIdentity();
        reputation = new AgentReputation(address(identity));
        reviewers = [reviewer, other];
        vm.prank(owner);
        identity.register("https://agent.example/registration.json");
    }

    function test_theFirstAgentIsZero() public {
        require(identity.ownerOf(0) == owner && identity.getAgentWallet(0) == owner, "its owner is its wallet");
        require(same(identity.tokenURI(0), "https://agent.example/registration.json"), "uri");
        vm.prank(stranger);
        require(identity.register() == 1 && bytes(identity.tokenURI(1)).length == 0, "the next is one, without uri");
        require(same(identity.name(), "AgentIdentity") && same(identity.symbol(), "AGENT"), "names");
    }

    function test_registeringIsLogged() public {
        vm.recordLogs();
        vm.prank(stranger);
        identity.register("ipfs://x");
        Vm.Log[] memory logs = vm.getRecordedLogs();
        require(logs[0].topics[0] == keccak256("Transfer(address,address,uint256)"), "minted");
        require(logs[1].topics[0] == keccak256("MetadataSet(uint256,string,string,bytes)"), "wallet");
        require(logs[1].topics[2] == keccak256("agentWallet"), "key");
        require(keccak256(logs[1].data) == keccak256(abi.encode("agentWallet", abi.encodePacked(stranger))), "value");
        Vm.Log memory last = logs[logs.length - 1];
        require(last.topics[0] == keccak256("Registered(uint256,string,address)"), "registered");
        require(uint256(last.topics[1]) == 1 && last.topics[2] == bytes32(uint256(uint160(stranger))), "who");
        require(keccak256(last.data) == keccak256(abi.encode("ipfs://x")), "uri");
    }

    function test_anUnknownAgentReverts() public view {
        bytes memory reason = because(bytes4(keccak256("ERC721NonexistentToken(uint256)")), 7);
        refuses(abi.encodeCall(identity.ownerOf, (7)), reason);
        refuses(abi.encodeCall(identity.tokenURI, (7)), reason);
        refuses(abi.encodeCall(identity.getAgentWallet, (7)), reason);
    }

    function test_aTransferClearsTheWallet() public {
        vm.prank(owner);
        identity.transferFrom(owner, recipient, 0);
        require(identity.ownerOf(0) == recipient && identity.getAgentWallet(0) == address(0), "cleared");
    }

    function test_onlyWhoMayActChangesAnAgent() public {
        vm.prank(stranger);
        (bool success,) = address(identity).call(abi.encodeCall(identity.setAgentURI, (0, "https://evil.example")));
        require(!success, "not a stranger");
        vm.prank(stranger);
        (success,) = address(identity).call(abi.encodeCall(identity.unsetAgentWallet, (0)));
        require(!success, "not a stranger");
        vm.prank(owner);
        identity.setApprovalForAll(stranger, true);
        vm.prank(stranger);
        identity.setAgentURI(0, "ipfs://new");
        require(same(identity.tokenURI(0), "ipfs://new"), "an operator may");
        vm.prank(owner);
        identity.unsetAgentWallet(0);
        require(identity.getAgentWallet(0) == address(0), "unset");
    }

    function test_nobodyReviewsTheirOwnAgent() public {
        require(reputation.getIdentityRegistry() == address(identity), "registry");
        bytes memory self = abi.encodeWithSignature("Error(string)", "Self-feedback not allowed");
        refusesFeedback(owner, 0, 0, self);
        vm.prank(owner);
        identity.setApprovalForAll(reviewer, true);
        refusesFeedback(reviewer, 0, 0, self);
        refusesFeedback(other, 0, 19, abi.encodeWithSignature("Error(string)", "too many decimals"));
        refusesFeedback(other, 7, 0, because(bytes4(keccak256("ERC721NonexistentToken(uint256)")), 7));
    }

    function test_feedbackIsCountedFromOne() public {
        vm.recordLogs();
        give(reviewer, 87, 0, "starred", "");
        Vm.Log memory log = vm.getRecordedLogs()[0];
        require(log.topics[2] == bytes32(uint256(uint160(reviewer))) && log.topics[3] == keccak256("starred"), "topics");
        bytes memory expected =
            abi.encode(uint64(1), int128(87), uint8(0), "starred", "", "https://a.example", "ipfs://f", bytes32(0));
        require(keccak256(log.data) == keccak256(expected), "data");
        give(reviewer, -32, 1, "tradingYield", "day");
        give(other, 1, 0, "reachable", "");
        require(reputation.getClients(0).length == 2 && reputation.getClients(0)[0] == reviewer, "each client once");
        require(reputation.getLastIndex(0, reviewer) == 2 && reputation.getLastIndex(0, stranger) == 0, "indexes");
        (int128 value, uint8 decimals, string memory tag1, string memory tag2, bool revoked) =
            reputation.readFeedback(0, reviewer, 2);
        require(value == -32 && decimals == 1 && same(tag1, "tradingYield") && same(tag2, "day") && !revoked, "as given");
    }

    function test_summariesAreOfOneTag() public {
        give(reviewer, 9977, 2, "uptime", "");
        give(other, 9950, 2, "uptime", "week");
        give(other, 99, 0, "uptime", "day");
        give(other, 560, 0, "responseTime", "");
        summarises("uptime", "", 3, 9942, 2); // 99.4233…, cut off
        summarises("uptime", "day", 1, 99, 0);
        summarises("responseTime", "", 1, 560, 0);
        summarises("starred", "", 0, 0, 0);
        address[] memory one = new address[](1);
        one[0] = reviewer;
        (uint64 count, int128 value, uint8 decimals) = reputation.getSummary(0, one, "uptime", "");
        require(count == 1 && value == 9977 && decimals == 2, "of one reviewer");
        (count, value, decimals) = reputation.getSummary(7, one, "", "");
        require(count == 0 && value == 0 && decimals == 0, "nothing of an unknown agent");
        (bool success, bytes memory result) =
            address(reputation).staticcall(abi.encodeCall(reputation.getSummary, (0, new address[](0), "", "")));
        require(!success, "reviewers are required");
        require(keccak256(result) == keccak256(abi.encodeWithSignature("Error(string)", "clientAddresses required")));
    }

    function test_whatIsRevokedCountsNoMore() public {
        give(reviewer, 100, 0, "starred", "");
        give(reviewer, 50, 0, "starred", "");
        vm.prank(reviewer);
        reputation.revokeFeedback(0, 1);
        summarises("starred", "", 1, 50, 0);
        require(reputation.getLastIndex(0, reviewer) == 2, "the index stays");
        vm.prank(reviewer);
        (bool success,) = address(reputation).call(abi.encodeCall(reputation.revokeFeedback, (0, 1)));
        require(!success, "once");
        vm.prank(other);
        (success,) = address(reputation).call(abi.encodeCall(reputation.revokeFeedback, (0, 1)));
        require(!success, "one's own only");
        (success,) = address(reputation).staticcall(abi.encodeCall(reputation.readFeedback, (0, reviewer, 0)));
        require(!success, "from one");
    }

    function testFuzz_anAverageLiesBetweenItsValues(int128 first, int128 second) public {
        give(reviewer, first, 18, "starred", "");
        give(other, second, 18, "starred", "");
        (, int128 value,) = reputation.getSummary(0, reviewers, "starred", "");
        require(value == int128((int256(first) + int256(second)) / 2), "average");
    }

    function give(address client, int128 value, uint8 decimals, string memory tag1, string memory tag2) private {
        vm.prank(client);
        reputation.giveFeedback(0, value, decimals, tag1, tag2, "https://a.example", "ipfs://f", bytes32(0));
    }

    function refusesFeedback(address client, uint256 agentId, uint8 decimals, bytes memory reason) private {
        vm.prank(client);
        (bool success, bytes memory result) = address(reputation).call(
            abi.encodeCall(reputation.giveFeedback, (agentId, 1, decimals, "", "", "", "", bytes32(0)))
        );
        require(!success && keccak256(result) == keccak256(reason), "refused for its reason");
    }

    function refuses(bytes memory call_, bytes memory reason) private view {
        (bool success, bytes memory result) = address(identity).staticcall(call_);
        require(!success && keccak256(result) == keccak256(reason), "refused for its reason");
    }

    function summarises(string memory tag1, string memory tag2, uint64 count, int128 value, uint8 decimals)
        private
        view
    {
        (uint64 foundCount, int128 foundValue, uint8 foundDecimals) = reputation.getSummary(0, reviewers, tag1, tag2);
        require(foundCount == count && foundValue == value && foundDecimals == decimals, "summary");
    }

    function same(string memory a, string memory b) private pure returns (bool) {
        return keccak256(bytes(a)) == keccak256(bytes(b));
    }
}
